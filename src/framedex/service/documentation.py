"""The page of the API's documentation: Swagger UI with local files."""

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

_ASSETS = "/api/v1/docs/assets"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Framedex API</title>
<link rel="stylesheet" href="docs/assets/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<main id="swagger-ui"></main>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = 'SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true});\n'
_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "frame-ancestors 'self'"
)


def add_documentation(app: FastAPI) -> None:
    """Add the documentation to an application; nothing of it is fetched from other hosts."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})

    async def start(_request: Request) -> Response:
        return Response(_START, media_type="text/javascript")

    app.add_route("/api/v1/docs", page)
    app.add_route("/api/v1/docs/start.js", start)
    folder = Path(fastapi_offline.__file__).parent / "static"
    app.mount(_ASSETS, StaticFiles(directory=folder), name="documentation")
