"""The application: its routes, its description, and what surrounds them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from tuneloom import __version__
from tuneloom.server.access.middleware import RequestMiddleware
from tuneloom.server.page import serving as page
from tuneloom.server.problems import ProblemDetails, add_handlers
from tuneloom.server.routes import (
    administration,
    events,
    health,
    jobs,
    knowledge,
    models,
    results,
    session,
    watching,
)
from tuneloom.server.settings import ServerSettings
from tuneloom.server.state import ServerState

API = "/api/v1"
_DESCRIPTION = """\
Submit a model, get a faster one. Every request but those for health carries a token:
`Authorization: Bearer tl_…`. What is wrong with a request is told as problem details (RFC 9457).
"""


def build_app(settings: ServerSettings) -> FastAPI:
    """The application on the store of its settings."""
    service = ServerState.begin(settings)
    app = FastAPI(
        title="Tuneloom",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
    )
    app.state.service = service
    app.state.access = service.access
    for routes in (models, jobs, results, events, knowledge, administration, session, watching):
        app.include_router(_versioned(routes.ROUTER))
    app.include_router(health.ROUTER)
    app.include_router(page.ROUTER)
    add_handlers(app)
    app.add_middleware(
        RequestMiddleware,
        most_body_bytes=settings.most_body_bytes,
        streams=frozenset({f"{API}/models"}),
        timed=service.metrics.timed,
    )
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app


def described(app: FastAPI) -> dict[str, Any]:
    """The description of the API; problems are the only answers to what is wrong."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = schema["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        problem = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas["ProblemDetails"] = problem
        app.openapi_schema = schema
    return app.openapi_schema


def _versioned(router: APIRouter) -> APIRouter:
    outer = APIRouter(prefix=API)
    outer.include_router(router)
    return outer


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: ServerState = app.state.service
    service.inspector.start()
    service.sweeper.start()
    try:
        yield
    finally:
        service.close()
