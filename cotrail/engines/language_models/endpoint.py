"""Endpoint of a model behind a server that speaks OpenAI's protocol, as `models.toml` describes it."""

import hashlib
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common.canonical_json import canonical
from cotrail.common.server_addresses import read_address

Api = Literal["completions", "chat"]
"""The request sent to the server: to continue the prompt as it stands, or to answer a chat message that holds it."""

ContextLength = Annotated[int, Meta(ge=1)]

VERSION = "/v1"
"""End of an endpoint's path; servers offer what isn't OpenAI's protocol beside this part."""


class Endpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of a served model, and the limits of requests to it.

    url: where the API begins, e.g. `http://gpu1:8000/v1`.
    model: the server's name for the model.
    context: tokens that a prompt and its continuation may take together.
    api: see `Api`; chat models follow a prompt's demonstrations less closely.
    key_variable: the environment variable, in capitals, that holds the API key. The key itself is written nowhere.
    revision: a free description of the weights behind the name, since what a server holds can't be digested.
    in_flight: the most requests under way at once; further ones wait.
    timeout_seconds: how long the server may be silent, before its first token and between tokens.
    """

    url: str
    model: Annotated[str, Meta(min_length=1)]
    context: ContextLength
    api: Api = "completions"
    key_variable: Annotated[str, Meta(pattern="^[A-Z_][A-Z0-9_]*$")] | None = None
    revision: str = ""
    in_flight: Annotated[int, Meta(ge=1)] = 256
    timeout_seconds: Annotated[float, Meta(gt=0)] = 300.0

    def __post_init__(self) -> None:
        try:
            address = read_address(self.url, ("http", "https"))
        except ValueError as error:
            raise ValueError(f"the url isn't that of a server: {error}; it reads like http://host:8000/v1") from None
        if address.user is not None or address.query:
            raise ValueError(
                "the url holds more than an address; a key belongs into the variable that key_variable names"
            )
        if not address.host:
            raise ValueError("the url isn't that of a server; it reads like http://host:8000/v1")
        if not address.path.endswith(VERSION):
            raise ValueError(f"the url doesn't end in {VERSION}")

    @property
    def digest(self) -> str:
        """The SHA-256 of everything known that decides an output. The address isn't part of it, as it may change."""
        decides = {"model": self.model, "revision": self.revision, "api": self.api, "context": self.context}
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def beside(self) -> str:
        """The address without its version."""
        return self.url.removesuffix(VERSION)
