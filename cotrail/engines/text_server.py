"""Servers that are sent texts and answer numbers, as the tables of `models.toml` describe them."""

import hashlib
from typing import Annotated, ClassVar

from msgspec import Meta

from cotrail.common.canonical_json import canonical
from cotrail.common.unusual_fields import unusual
from cotrail.engines.server_address import ServerAddress


class TextServer(ServerAddress, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of such a server.

    batch_size: the most texts of a request.
    path: of requests, behind the URL. decides: the fields that decide the model's output, beside those of each server.
    """

    decides: ClassVar[tuple[str, ...]] = ()

    in_flight: Annotated[int, Meta(ge=1)] = 16
    batch_size: Annotated[int, Meta(ge=1)] = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url.endswith(("/", self.path)):
            raise ValueError(f"the url is where the API begins: leave out its end, {self.path} or /")

    @property
    def path(self) -> str:
        """See the class."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """The SHA-256 of everything known that decides the output. The address isn't part of it, as it may change."""
        decides = {"model": self.model, "revision": self.revision, **unusual(self, "extra", *self.decides)}
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def for_long_texts(self) -> str:
        """See `ServerAddress`."""
        return (
            f"have the server cut what is too long, by `extra` in the table of {self.model}: "
            "{ truncate = true } for TEI, { truncate_prompt_tokens = -1 } for vLLM"
        )
