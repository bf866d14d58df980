"""The application: its routes, its layers, its start and its end."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pkgutil import iter_modules

import anyio
from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware

import framedex.service.routes as route_modules
from framedex import __version__
from framedex.api.workspace import Workspace
from framedex.hub import Hub
from framedex.service.documentation import add_documentation
from framedex.service.errors import add_handlers
from framedex.service.maintenance import Maintenance
from framedex.service.metrics import Metrics
from framedex.service.middleware import RequestMiddleware
from framedex.service.settings import OidcSettings, ServiceSettings, auth_is_off
from framedex.service.sign_on import open_sign_on
from framedex.service.staging import remove_staged
from framedex.service.state import ServiceState
from framedex.service.uris import Uris
from framedex.service.web_app import add_app

_NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(
    workspace: Workspace,
    hub: Hub,
    settings: ServiceSettings,
    *,
    host: str = "127.0.0.1",
    oidc: OidcSettings | None = None,
    is_only: bool = True,
    embedders: Sequence[str] = (),
    on_stop: Callable[[], None] = lambda: None,
) -> FastAPI:
    """Return the application of a workspace.

    Args:
        workspace: the open workspace.
        hub: its users.
        settings: the settings of the service.
        host: the address at which the service listens.
        oidc: the settings of log-in by OpenID Connect; None for none.
        is_only: whether no other server serves the workspace; what killed ones left is removed then.
        embedders: the origins, as in a content security policy, whose pages may show the app in a frame.
        on_stop: called once the last request has ended.

    Raises:
        InvalidInput: the settings are not complete.
        MissingDependency: the extra ``oidc`` is needed and not installed.
    """
    oidc = oidc or OidcSettings.off()
    state = ServiceState(
        workspace=workspace,
        hub=hub,
        settings=settings,
        uris=Uris(hub.deriver),
        auth_off=auth_is_off(settings, host),
        bound=[host.lower()],
        heavy=anyio.CapacityLimiter(settings.heavy_requests),
        sign_on=open_sign_on(oidc, hub, public_url=settings.public_url),
        takes_passwords=not oidc.oidc_only,
        embedders=tuple(embedders),
    )
    maintenance, metrics = Maintenance(state), Metrics(state)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if is_only:
            await anyio.to_thread.run_sync(remove_staged, workspace.path)
        maintenance.start()
        hub.feed.start()
        hub.calls.start()
        try:
            yield
        finally:
            state.stopping.set()
            await anyio.to_thread.run_sync(maintenance.stop)
            await anyio.to_thread.run_sync(on_stop)

    app = api(lifespan)
    app.state.service, app.state.metrics = state, metrics
    add_documentation(app)
    add_app(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            allow_credentials=True,
        )
    app.add_middleware(RequestMiddleware, state=state, observe=metrics.observe)
    return app


def api(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None) -> FastAPI:
    """Return an application with all routes, without a workspace that it could serve."""
    app = FastAPI(
        title="Framedex",
        version=__version__,
        openapi_url=None,  # see add_documentation
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,  # type: ignore[arg-type] # a plain dict; nothing is reported to anyone
        form_limits={"max_files": 1000, "max_fields": 50},
    )
    add_handlers(app)
    for router in routers():  # not by include_router, with which each request searches its route twice
        app.router.routes += router.routes
    return app


def routers() -> Sequence[APIRouter]:
    """Return the routers of all modules of routes, by the name of the module."""
    names = sorted(module.name for module in iter_modules(route_modules.__path__))
    return [import_module(f"{route_modules.__name__}.{name}").router for name in names]
