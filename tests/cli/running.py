"""Commands in the process of the test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from framedex.cli import main

Run = Callable[..., tuple[int, str, str]]
"""Runs a command on a workspace; returns its status, its output and its error output."""


def runner(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs commands on a workspace."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(workspace)])
        captured = capsys.readouterr()
        code = exit_.value.code
        return code if isinstance(code, int) else 0, captured.out, captured.err

    return call
