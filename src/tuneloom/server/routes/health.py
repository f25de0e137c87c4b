"""Whether the server lives, whether it should get requests, and its numbers."""

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from tuneloom.app.hosting.seeing import service_view
from tuneloom.server.access.callers import reader
from tuneloom.server.bodies.accounts import HealthTold
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served
from tuneloom.store import Store

ROUTER = APIRouter(tags=["health"])


@ROUTER.get("/healthz")
async def is_alive() -> HealthTold:
    """The server process is alive."""
    return HealthTold(status="ok")


@ROUTER.get("/readyz", responses={503: documented(503)[503]})
def is_ready(service: Served) -> HealthTold:
    """The store is usable, and the server is not shutting down."""
    if service.draining:
        raise Problem(503, "the server is about to end")
    with service.stores.lent() as store:
        _touch(store)
    return HealthTold(status="ok")


@ROUTER.get("/metrics", response_class=Response, dependencies=[Depends(reader)], responses=documented())
def show_metrics(service: Served) -> Response:
    """Metrics for Prometheus, for all tenants together; needs a token with the role `reader`."""
    with service.stores.lent() as store:
        seen = service_view(store)
    return Response(service.metrics.text(seen), media_type=CONTENT_TYPE_LATEST)


def _touch(store: Store) -> None:
    store.tenants()
