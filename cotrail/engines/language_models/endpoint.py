"""A model behind a server that speaks OpenAI's protocol, as the list of models describes it."""

import hashlib
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common.canonical_json import canonical
from cotrail.common.server_addresses import read_address

Api = Literal["completions", "chat"]
"""What is asked of the server: to continue the prompt as it stands, or to answer a message that holds it."""

Tokens = Annotated[int, Meta(ge=1)]

VERSION = "/v1"
"""How an address ends; what servers offer beside OpenAI's protocol lies beside this part of it."""


class Endpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a served model is and how it is asked.

    url: where the API begins, e.g. `http://gpu1:8000/v1`.
    model: what the server calls the model.
    context: how many tokens a prompt and its continuation may take together.
    api: see `Api`; models that only chat reason less like the prompt's demonstrations.
    key_variable: the name, in capitals, of the environment variable that holds the key. The key itself is written
        nowhere.
    revision: which weights are behind the name, in any words: what a server holds can't be digested.
    in_flight: how many requests are under way at once; further ones wait.
    timeout_seconds: how long the server may be silent, before its first token and between tokens.
    """

    url: str
    model: Annotated[str, Meta(min_length=1)]
    context: Tokens
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
        """The SHA-256 of all that is known of what decides an output; not of the address, which may change."""
        decides = {"model": self.model, "revision": self.revision, "api": self.api, "context": self.context}
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def beside(self) -> str:
        """The address without its version."""
        return self.url.removesuffix(VERSION)
