"""The web app in a notebook: a widget whose server is the kernel, or a page of a server in a thread."""

from framedex.notebook.opening import open_app

__all__ = ["open_app"]
