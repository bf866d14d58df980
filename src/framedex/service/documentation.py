"""The page of the API's documentation: Swagger UI with local files."""

import json
import threading
from pathlib import Path

import anyio
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
<link rel="stylesheet" href="docs/page.css">
<link rel="icon" href="data:,">
</head>
<body>
<main id="swagger-ui"></main>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
# Swagger UI puts a link into the button of an operation, skips a level of headings, and has colours that are too faint.
_START = """const accessible = () => ({
  wrapComponents: {
    DeepLink: (_original, {React}) => ({text}) => React.createElement("span", null, text),
    operations: (Original, {React}) => (props) =>
      React.createElement("section", null, React.createElement("h2", null, "Operations"),
        React.createElement(Original, props)),
  },
});
SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, plugins: [accessible]});
"""
_STYLE = """.swagger-ui .opblock .opblock-summary-method { color: #111; text-shadow: none; }
.swagger-ui .info .title small { background: #4a5160; }
.swagger-ui .info .title small.version-stamp { background: #3f6600; }
.swagger-ui .info .title small pre.version { background: transparent; color: #fff; }
.swagger-ui .info .url, .swagger-ui .info a { color: #1f5fa8; }
.swagger-ui .json-schema-2020-12-expand-deep-button { color: #3b4151; }
"""
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

    async def style(_request: Request) -> Response:
        return Response(_STYLE, media_type="text/css")

    making, made = threading.Lock(), list[bytes]()

    def description() -> bytes:
        with making:  # it takes seconds, and is large: made once, and not in the thread of the event loop
            if not made:
                made.append(json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode())
        return made[0]

    async def schema(_request: Request) -> Response:
        content = made[0] if made else await anyio.to_thread.run_sync(description)
        return Response(content, media_type="application/json")

    app.add_route("/api/v1/openapi.json", schema)
    app.add_route("/api/v1/docs", page)
    app.add_route("/api/v1/docs/page.css", style)
    app.add_route("/api/v1/docs/start.js", start)
    folder = Path(fastapi_offline.__file__).parent / "static"
    app.mount(_ASSETS, StaticFiles(directory=folder), name="documentation")
