"""The pages of the app: one page for all its addresses, and its files."""

from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from framedex.service.state import ServiceState
from framedex.web import BUILD_HINT, AppPages

_PAGES = ("/", "/d/{path:path}", "/tasks", "/login", "/account", "/users", "/admin", "/import", "/notifications")
_POLICY = "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'self'"


class _ImmutableFiles(StaticFiles):
    """Files whose names change with their content."""

    def file_response(self, *arguments: object, **options: object) -> Response:
        """Return the response of a file, which browsers keep for a year."""
        response: Response = super().file_response(*arguments, **options)  # type: ignore[arg-type] # passed on as it is
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def add_app(app: FastAPI, pages: AppPages | None = None) -> None:
    """Add the pages of the app to an application; nothing of them is fetched from other hosts."""
    found = pages or AppPages()

    async def page(request: Request) -> Response:
        if not found.exist:
            return PlainTextResponse(f"{BUILD_HINT}\nThe API is at /api/v1/docs.\n", status_code=503)
        state: ServiceState = request.app.state.service
        policy = " ".join([_POLICY, *state.embedders])
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
        return HTMLResponse(found.index(_prefix(request)), headers=headers)

    for path in _PAGES:
        app.add_route(path, page, include_in_schema=False)
    if found.exist:
        app.mount("/static", _ImmutableFiles(directory=found.folder), name="app")


def _prefix(request: Request) -> str:
    """Return the path of the public address, if the request came by it."""
    state: ServiceState = request.app.state.service
    public = urlsplit(state.settings.public_url or "")
    return public.path.rstrip("/") if public.netloc == request.headers.get("host") else ""
