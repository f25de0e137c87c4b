"""Errors as problem details (RFC 9457), with the field that is wrong."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from tuneloom.errors import ConflictError, InputError, QuotaError, StoreError, TuneloomError

MEDIA_TYPE = "application/problem+json"
_LOG = logging.getLogger("tuneloom.server")


class ProblemDetails(BaseModel):
    """What is wrong with a request, and how to correct it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "'trials' must be a whole number of at least 0, got -1",
                    "field": "trials",
                    "request_id": "7f9c24e8d1a04b55",
                }
            ]
        }
    )
    type: str = Field(description="always about:blank: the status says what kind of problem it is")
    title: str = Field(description="the name of the status")
    status: int
    detail: str = Field(description="one line that names the thing and says the remedy")
    field: str | None = Field(default=None, description="the part of the request that is wrong")
    request_id: str = Field(description="names this request in the server's log")


class Problem(Exception):  # noqa: N818 - the name of the standard
    """Raised by handlers; becomes an answer."""

    def __init__(
        self, status: int, detail: str, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = headers or {}


def problem_answer(request: Request, problem: Problem) -> JSONResponse:
    """A problem as an answer to a request."""
    return JSONResponse(
        problem_body(problem, request.scope.get("state", {}).get("request_id", "")),
        status_code=problem.status,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def problem_body(problem: Problem, request_id: str) -> dict[str, Any]:
    """The fields of the standard, and ours."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "field": problem.field,
        "request_id": request_id,
    }


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These answers for the description of a route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted({*statuses, 400, 401, 403, 429})
    }


def status_of(error: TuneloomError) -> int:
    """The status that tells an error of ours."""
    match error:
        case ConflictError():
            return 409
        case QuotaError():
            return 403
        case InputError():
            return 422
        case StoreError():
            return 503
        case _:
            return 500


def add_handlers(app: FastAPI) -> None:
    """Let every error of the application become a problem."""

    @app.exception_handler(Problem)
    async def of_problem(request: Request, error: Problem) -> JSONResponse:
        return problem_answer(request, error)

    @app.exception_handler(TuneloomError)
    async def of_ours(request: Request, error: TuneloomError) -> JSONResponse:
        status = status_of(error)
        if status >= 500:
            _LOG.error("request failed: %s", error)
            detail = "the store can't be used at the moment; try again later"
            return problem_answer(request, Problem(status, detail, headers={"Retry-After": "5"}))
        field = error.field if isinstance(error, InputError) else None
        return problem_answer(request, Problem(status, str(error), field))

    @app.exception_handler(RequestValidationError)
    async def of_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        places = [str(part) for part in first["loc"][1:]]
        return problem_answer(request, Problem(422, _words(places, first), ".".join(places) or None))

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        return problem_answer(request, Problem(error.status_code, str(error.detail), headers=headers))

    @app.exception_handler(Exception)
    async def of_anything(request: Request, error: Exception) -> JSONResponse:
        _LOG.exception("a request broke")
        return problem_answer(request, Problem(500, "the server made a mistake; its log says more"))


def _words(places: list[str], first: Any) -> str:
    message = str(first["msg"])[:300]
    where = ".".join(places)
    return f"{where!r}: {message}"[:400] if where else message
