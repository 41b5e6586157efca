"""Errors as pages, for people; programs get them as problem+json (`cotrail.api.problems`)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from litestar import Response

from cotrail.api.origins import AnyRequest
from cotrail.api.pages import here_of, page_response, wants_page
from cotrail.api.problems import ACTOR, Problem
from cotrail.api.sign_in import sign_in_page
from cotrail.services.actor import ANYBODY, acting
from cotrail.viewer.page import Shown, placed

E = TypeVar("E", bound=Exception)


def shown_to_people(handle: Callable[[AnyRequest, E], Response[Problem]]) -> Callable[[AnyRequest, E], Response[Any]]:
    """The handler of an error with a page for those who look with a browser; theirs says how to sign in."""

    def answer(request: AnyRequest, error: E) -> Response[Any]:
        response = handle(request, error)
        return _page(request, response) if wants_page(request) else response

    return answer


def _page(request: AnyRequest, response: Response[Problem]) -> Response[Any]:
    problem = response.content
    with acting(request.state.get(ACTOR, ANYBODY)):
        if problem.status == HTTPStatus.UNAUTHORIZED:
            return _sign_in(request, problem)
        shown = Shown(template="problem.html", values={"problem": problem})
        return page_response(shown, here_of(request), problem.status)


def _sign_in(request: AnyRequest, problem: Problem) -> Response[Any]:
    """The page for those who aren't signed in, after which they see what they wanted to; why they couldn't, if not."""
    if request.scope["path"].startswith("/auth/"):
        return sign_in_page(request, placed("/"), problem.detail)
    return sign_in_page(request, here_of(request).with_query() if request.method == "GET" else placed("/"))
