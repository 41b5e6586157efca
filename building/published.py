"""`python -m building.published [3.1]`: the description of the service, for the two documents in docs."""

import sys

import msgspec

from cotrail.api.app import application
from cotrail.api.description import FORMER_VERSION, VERSION, description


def document(version: str = VERSION) -> bytes:
    """The OpenAPI document in a version, for people to read too."""
    app = application()
    described = description(app, app.openapi_schema.to_schema(), version)
    return msgspec.json.format(msgspec.json.encode(described)) + b"\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(document(FORMER_VERSION if sys.argv[1:] == ["3.1"] else VERSION))
