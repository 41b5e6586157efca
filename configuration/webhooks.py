"""The file `webhooks.toml`: the endpoints of other programs that are told when a run ends or is blocked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cotrail.common.server_addresses import read_address
from cotrail.common.toml_files import read_toml_as
from cotrail.engines.server_address import VariableName

RunEvent = Literal["finished", "cancelled", "blocked"]
"""What may happen to a run that others are told of."""


class WebhookEndpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint.

    url: where events are sent to; secret_variable: the environment variable, in capitals, of the secret that signs
        them, as Standard Webhooks writes it (`whsec_` and base64).
    events: those that it is told of; projects: the projects of whose runs, None for all.
    """

    url: str
    secret_variable: VariableName
    events: tuple[RunEvent, ...] = ("finished", "cancelled", "blocked")
    projects: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        try:
            address = read_address(self.url, ("http", "https"))
        except ValueError as error:
            raise ValueError(f"the url isn't an address: {error}; it reads like https://host/path") from None
        if not address.host or address.user is not None:
            raise ValueError("the url isn't that of an endpoint; it reads like https://host/path, without a password")

    def wants(self, event: str, project: str) -> bool:
        """Whether it is told of this event of a run of that project."""
        return event in self.events and (self.projects is None or project in self.projects)


Endpoints = Mapping[str, WebhookEndpoint]
"""Endpoints by their names."""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    webhooks: dict[str, WebhookEndpoint] = {}


def read_webhooks(path: Path) -> Endpoints:
    """The endpoints of the file, none for a missing file; raises InputError where it is malformed."""
    return read_toml_as(path, "the list of webhooks", _File).webhooks
