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

    def widget_loader(self) -> str:
        """Return the module of a widget in a notebook.

        Raises:
            FileNotFoundError: the app was not built.
        """
        return (self.folder / "notebook" / "loader.js").read_text(encoding="utf-8")

    def widget_files(self) -> tuple[str, str]:
        """Return the styles and the code of the app in a widget.

        Raises:
            FileNotFoundError: the app was not built.
        """
        styles, code = ((self.folder / "notebook" / name).read_text(encoding="utf-8") for name in ("app.css", "app.js"))
        return styles, code

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
