"""The web app: its source is in ``app``, what the build makes of it in ``static``."""

from framedex.web.pages import BUILD_HINT, AppPages

__all__ = ["BUILD_HINT", "AppPages"]
