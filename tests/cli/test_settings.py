"""The command that shows the settings."""

import json
from pathlib import Path

import pytest

from framedex.cli import main


def test_settings__are_shown_with_their_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each setting has a line with its value and source; a workspace need not exist, and none is created."""
    monkeypatch.setenv("FRAMEDEX_THREADS", "3")
    monkeypatch.setenv("FRAMEDEX_SECRET_KEY", "planted secret of the service, long")
    shown = []
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as exit_:
            main(["settings", "-w", str(tmp_path / "ws"), *more])
        assert exit_.value.code in (0, None)
        shown.append(capsys.readouterr().out)
    (line,) = (line.split() for line in shown[0].splitlines() if line.startswith("FRAMEDEX_THREADS "))
    assert line == ["FRAMEDEX_THREADS", "3", "FRAMEDEX_THREADS"]
    by_name = {each["variable"]: each for each in json.loads(shown[1])}
    assert (by_name["FRAMEDEX_THREADS"]["value"], by_name["FRAMEDEX_USER"]["source"]) == ("3", "default")
    assert by_name["FRAMEDEX_SECRET_KEY"]["secret"]
    assert "planted" not in "".join(shown)
    assert list(tmp_path.iterdir()) == []
