"""The application: routes, errors, description."""

from importlib.metadata import version

from litestar import Litestar, Router
from litestar.config.app import AppConfig as AppConfig
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig

from cotrail.api import problems
from cotrail.api.access import Access
from cotrail.api.handlers import handlers
from cotrail.api.openai.routes import router as openai
from cotrail.errors import CotrailError


def application() -> Litestar:
    """The service, as an ASGI application."""
    return Litestar(
        [Router("/v1", route_handlers=handlers()), openai()],
        middleware=[Access()],
        exception_handlers={
            CotrailError: problems.of_error,
            HTTPException: problems.of_http,
            Exception: problems.of_bug,
        },
        openapi_config=OpenAPIConfig(title="cotrail", version=version("cotrail"), path="/v1/openapi"),
        debug=False,
    )
