"""The application: routes, errors, description."""

from importlib.metadata import version

from litestar import Litestar, Router
from litestar.config.app import AppConfig as AppConfig
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig

from cotrail.api import problems
from cotrail.api.access import PUBLIC, Access, tell_id
from cotrail.api.handlers import handlers
from cotrail.api.uploads import HANDLERS as UPLOADS
from cotrail.errors import CotrailError


def application() -> Litestar:
    """The service, as an ASGI application."""
    description = Router("/v1/openapi", route_handlers=[], opt={PUBLIC: True}, include_in_schema=False)
    return Litestar(
        [Router("/v1", route_handlers=[*handlers(), *UPLOADS])],
        middleware=[Access()],
        before_send=[tell_id],
        exception_handlers={
            CotrailError: problems.of_error,
            HTTPException: problems.of_http,
            Exception: problems.of_bug,
        },
        openapi_config=OpenAPIConfig(title="cotrail", version=version("cotrail"), openapi_router=description),
        debug=False,
    )
