"""Errors as OpenAI's API has them."""

from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException

from cotrail.api import problems
from cotrail.errors import CotrailError, InputError, UnknownNameError

NO_ANSWER = HTTPStatus.UNPROCESSABLE_ENTITY
"""The status where a question has no answer. Workers have tried it again as often as makes sense, and clients ask again
after each error of the server, some without an end."""

TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def error_body(message: str, status: int, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error; its type follows from the status of the answer."""
    kind = TYPES.get(HTTPStatus(status), "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def of_error(request: Request[Any, Any, Any], error: CotrailError) -> Response[dict[str, Any]]:
    """The answer where a request is refused or failed."""
    problem = problems.of_error(request, error)
    told, status = problem.content, problem.status_code or HTTPStatus.INTERNAL_SERVER_ERROR
    code = "model_not_found" if isinstance(error, UnknownNameError) else told.title.replace(" ", "_")
    if isinstance(error, InputError) and not isinstance(error, UnknownNameError):
        status = HTTPStatus.BAD_REQUEST
    body = error_body(told.detail, status, code)
    return Response(body, status_code=status, headers={**problem.headers, "x-request-id": told.request_id})


def of_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """The answer where a request can't be read."""
    problem = problems.of_http(request, error)
    status = problem.status_code or HTTPStatus.BAD_REQUEST
    return Response(error_body(problem.content.detail, status), status_code=status)
