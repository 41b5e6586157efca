"""Errors over HTTP: problem+json (RFC 9457), in the words of the command line, with a page of the docs as type."""

import logging
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPStatus

from litestar import Response
from litestar.datastructures import MutableScopeHeaders
from litestar.exceptions import HTTPException
from litestar.types import Message, Scope
from msgspec import Struct

from cotrail import errors
from cotrail.api.origins import AnyRequest
from cotrail.common.nearest import slug
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.services.access.projects import without_places
from cotrail.services.actor import ANYBODY, acting
from cotrail.services.library.uploaded_files import named_without_place

# Ids of requests, under which the service logs them and which its answers name.

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""


def id_of(scope: Scope) -> str:
    """The id of a request."""
    return str(scope["state"].setdefault("request_id", str(uuid.uuid4())))


async def tell_id(message: Message, scope: Scope) -> None:
    """Say in an answer under which id its request is logged; called before anything is sent."""
    if message["type"] == "http.response.start":
        MutableScopeHeaders.from_message(message)["X-Request-Id"] = id_of(scope)


logger = logging.getLogger(__name__)

PAGE = f"{errors.DOCS}api-errors.md#"
"""The page of the docs that describes each type of problem, under a heading of its name."""

MEDIA_TYPE = "application/problem+json"

STATUSES: dict[type[CotrailError], HTTPStatus] = {
    errors.UnknownNameError: HTTPStatus.NOT_FOUND,
    errors.TooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.InputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.UnauthenticatedError: HTTPStatus.UNAUTHORIZED,
    errors.ForbiddenError: HTTPStatus.FORBIDDEN,
    errors.QuotaExceededError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.TooManyRequestsError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.ConflictError: HTTPStatus.CONFLICT,
    errors.BundleError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.UnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.BlockedError: HTTPStatus.CONFLICT,
}
"""The status of each kind of error; a kind that isn't here has that of the next one above it."""

UNREAD: dict[HTTPStatus, tuple[str, str]] = {
    HTTPStatus.BAD_REQUEST: ("bad-request", "the request can't be read"),
    HTTPStatus.NOT_FOUND: ("not-found", "there is nothing at this path; /v1/openapi/openapi.json has all"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method-not-allowed", "this path doesn't take that method; `Allow` has all"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("content-too-large", "the body is larger than the service takes"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("unsupported-media-type", "the body's type isn't one that this route takes"),
}
"""The names of problems with requests that aren't even read, by status, and what is said where nothing else is."""

BUG = "internal-error"

ACTOR = "actor"
"""The key of a request's state under which it is who asks, once that is known."""


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong with a request.

    type: the page that describes such problems; title: what they have in common; detail: what to do about this one.
    notes: lines to copy, such as a table for a file; request_id: of the request, for the service's logs.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    notes: tuple[str, ...] = ()


def of_error(request: AnyRequest, error: CotrailError) -> Response[Problem]:
    """The answer where an operation refused or failed."""
    kind = next((each for each in type(error).__mro__ if each in STATUSES), CotrailError)
    status = STATUSES.get(kind, HTTPStatus.INTERNAL_SERVER_ERROR)
    if kind is CotrailError:
        logger.error("an operation failed: %s", error, exc_info=error)
    # Where it isn't known yet who asks, the error may be the store's.
    with acting(request.state.get(ACTOR, ANYBODY)):
        detail, *notes = map(_discreet, (str(error), *getattr(error, "__notes__", ())))
    seconds = getattr(error, "seconds", None)
    headers = {} if seconds is None else {"Retry-After": str(max(1, round(seconds)))}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return _answer(request, slug(kind.__name__), status, detail, tuple(notes), headers)


def of_http(request: AnyRequest, error: HTTPException) -> Response[Problem]:
    """The answer where a request can't be read, or no route has its path."""
    status = HTTPStatus(error.status_code)
    name, said = UNREAD.get(status, (status.phrase.lower().replace(" ", "-"), ""))
    own = error.detail if error.detail not in ("", status.phrase) else ""
    return _answer(request, name, status, _discreet(own or said or status.phrase), (), error.headers)


def of_bug(request: AnyRequest, error: Exception) -> Response[Problem]:
    """The answer where the service itself is at fault."""
    logger.error("a request failed", exc_info=error)
    explanation = "the service failed; its log has the reason under this request id"
    return _answer(request, BUG, HTTPStatus.INTERNAL_SERVER_ERROR, explanation, (), None)


def _answer(
    request: AnyRequest,
    name: str,
    status: HTTPStatus,
    detail: str,
    notes: tuple[str, ...],
    headers: Mapping[str, str] | None,
) -> Response[Problem]:
    problem = Problem(
        type=f"{PAGE}{name}",
        title=name.replace("-", " "),
        status=status,
        detail=detail,
        notes=notes,
        request_id=id_of(request.scope),
    )
    return Response(problem, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def _discreet(message: str) -> str:
    return settings().secrets.hidden(without_places(named_without_place(message)))
