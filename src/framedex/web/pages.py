"""The built files of the app, as they are served."""

from pathlib import Path

BUILD_HINT = "the web app was not built: run `python hatch_build.py` in the source folder, with Node and a network"
"""What to do where the app is missing."""
_BASE = '<meta name="framedex-base" content="">'
_FILES = '"/static/'


class AppPages:
    """The built files of the app.

    Args:
        folder: where the build puts them.

    Attributes:
        folder: the same.
    """

    def __init__(self, folder: Path = Path(__file__).parent / "static") -> None:
        self.folder = folder

    @property
    def exist(self) -> bool:
        """True if the app was built."""
        return (self.folder / "index.html").is_file()

    def index(self, prefix: str = "") -> str:
        """Return the page that loads the app.

        Args:
            prefix: the path below which a proxy serves the app, without a slash at the end.

        Raises:
            FileNotFoundError: the app was not built.
        """
        page = (self.folder / "index.html").read_text(encoding="utf-8")
        if not prefix:
            return page
        quoted = prefix.replace("&", "&amp;").replace('"', "&quot;")
        return page.replace(_BASE, _BASE.replace('""', f'"{quoted}"')).replace(_FILES, f'"{quoted}/static/')
