"""`python -m cotrail.api.published`: the description of the service, for docs/openapi.json."""

import sys

import msgspec

from cotrail.api.app import application
from cotrail.api.description import description


def document() -> bytes:
    """The OpenAPI document, for people to read too."""
    described = description(application().openapi_schema.to_schema())
    return msgspec.json.format(msgspec.json.encode(described)) + b"\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(document())
