"""Names of uploaded files are checked before anything is stored."""

from pathlib import Path
from typing import Any

import pytest

from framedex.errors import InvalidInput
from framedex.jobs.ingest.uploads import upload_files
from framedex.settings import Settings
from tests.jobs.fakes import ignore


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (("\ud800", b"x"), r"files\[0\]: the name '\\ud800' has a lone surrogate"),
        (("folder/\ud800.png", b"x"), "has a lone surrogate"),
        (("../a.png", b"x"), "is no path within a folder"),
        (("a\0.png", b"x"), "is no path within a folder"),
        (("", b"x"), "a file needs a name"),
        ("\ud800.png", "cannot read"),
    ],
)
def test_upload__name_that_cannot_be_used(tmp_path: Path, file: Any, message: str) -> None:
    """A name that no file can have is an error with the position of the file."""
    with pytest.raises(InvalidInput, match=message):
        upload_files([file], tmp_path, Settings(), ignore)
