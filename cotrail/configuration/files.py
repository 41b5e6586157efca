"""The files of a service apart from its settings: sign-in, webhooks, servers of others, the place of corpora."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cotrail.common.nearest import unknown
from cotrail.common.server_addresses import Address, read_address
from cotrail.common.toml_files import read_toml_as
from cotrail.configuration.settings import Settings
from cotrail.engines.retrieval import stores
from cotrail.engines.retrieval.engine import CorpusStore
from cotrail.engines.server_address import VariableName
from cotrail.errors import InputError

# The file `service.toml`: by which provider people sign in to the service, and what they may do there.

Text = Annotated[str, Meta(min_length=1, max_length=1000)]

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom it lets in, by one of three, and what those may do.

    email: one person; domain: everybody whose e-mail is of it, not of one below it; claim: everybody of whom the
        provider says that this claim is `value`, or a list with it. E-mails count where the provider verified them.
    project: theirs; scope: what they may do, with all before it.
    """

    project: Text
    scope: Literal["read", "submit", "operate", "admin"]
    email: Text | None = None
    domain: Text | None = None
    claim: Text | None = None
    value: Text | None = None

    def __post_init__(self) -> None:
        ways = [each for each in (self.email, self.domain, self.claim) if each is not None]
        if len(ways) != 1 or (self.claim is None) != (self.value is None):
            raise ValueError("a rule names people by `email`, by `domain`, or by `claim` and `value`")

    def names(self, email: str | None, claims: Mapping[str, Any]) -> bool:
        """Whether it lets in whose e-mail is this one (None: not verified), and of whom this is claimed."""
        if self.claim is not None:
            claimed = claims.get(self.claim)
            return self.value in claimed if isinstance(claimed, list) else self.value == claimed
        if email is None:
            return False
        if self.email is not None:
            return _alike(self.email, email)
        return _alike(self.domain or "", email.rpartition("@")[2])


class SignInTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people sign in.

    issuer: the OpenID Connect provider, as it writes itself; client_id: what the service is there.
    secret_variable: the environment variable, in capitals, of the secret that the provider gave the service.
    rules: the first one that names a person counts, and whom none names isn't let in.
    hours: how long a session lasts; ask_for: the scopes that the provider is asked for.
    """

    issuer: str
    client_id: Text
    secret_variable: VariableName
    rules: tuple[Rule, ...]
    hours: Annotated[float, Meta(gt=0, le=24 * 31)] = 8.0
    ask_for: tuple[Text, ...] = ("openid", "email")

    def __post_init__(self) -> None:
        try:
            address = read_address(self.issuer, ("http", "https"))
        except ValueError as error:
            raise ValueError(f"the issuer isn't an address: {error}; it reads like https://host/path") from None
        if not _is_safe(address):
            raise ValueError("the issuer reads like https://host/path; without TLS only on the machine itself")
        if "openid" not in self.ask_for:
            raise ValueError("`ask_for` needs `openid`, or the provider doesn't say who signs in")

    def rule_for(self, email: str | None, claims: Mapping[str, Any]) -> Rule | None:
        """The rule that counts for a person; see `Rule.names`."""
        return next((rule for rule in self.rules if rule.names(email, claims)), None)


class _ServiceFile(Struct, frozen=True, forbid_unknown_fields=True):
    sign_in: SignInTable | None = None


def read_sign_in(path: Path) -> SignInTable | None:
    """How people sign in by the file, None where nothing is said; raises InputError where it is malformed."""
    return read_toml_as(path, "the configuration of the service", _ServiceFile).sign_in


def _is_safe(address: Address) -> bool:
    plain = address.user is None and not address.query and address.host != ""
    return plain and (address.scheme == "https" or address.host in _LOOPBACK)


def _alike(one: str, other: str) -> bool:
    """Whether they differ in the case of ASCII letters at most: further letters look like others when folded."""
    return one.encode().lower() == other.encode().lower()


# The file `webhooks.toml`: the endpoints of other programs that are notified when a run ends or is blocked.

RunEvent = Literal["finished", "cancelled", "blocked"]
"""What may happen to a run that others are notified of."""


class WebhookEndpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint.

    url: where events are sent to; secret_variable: the environment variable, in capitals, of the secret that signs
        them, as Standard Webhooks writes it (`whsec_` and base64).
    events: those that it is notified of; projects: the projects of whose runs, None for all.
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
        """Whether it is notified of this event of a run of that project."""
        return event in self.events and (self.projects is None or project in self.projects)


Endpoints = Mapping[str, WebhookEndpoint]
"""Endpoints by their names."""


class _WebhooksFile(Struct, frozen=True, forbid_unknown_fields=True):
    webhooks: dict[str, WebhookEndpoint] = {}


def read_webhooks(path: Path) -> Endpoints:
    """The endpoints of the file, none for a missing file; raises InputError where it is malformed."""
    return read_toml_as(path, "the list of webhooks", _WebhooksFile).webhooks


def corpora_of(settings: Settings) -> CorpusStore:
    """The store of corpora: the folder's, the search server's where one is set, and those that are only searched."""
    store = stores.corpus_store(settings.corpora_path, settings.search_server, settings.catalogue_path)
    return stores.RemoteCorpora(settings.remote_corpora, store)


# The file `servers.toml`: names for the services that this person uses, and where their tokens are.

TOKEN = "COTRAIL_TOKEN"  # noqa: S105 - the name of the variable
"""The environment variable of the token where a server's entry names neither variable nor file."""


class ServerEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service: its address without `/v1`, and where its token is."""

    url: str
    token_variable: VariableName | None = None
    token_file: str | None = None

    def __post_init__(self) -> None:
        if self.token_variable and self.token_file:
            raise ValueError("`token_variable` and `token_file` both say where the token is; give one of the two")


class Server(Struct, frozen=True, kw_only=True):
    """A service and a token of its, empty for none."""

    url: str
    token: str


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    servers: dict[str, ServerEntry] = {}


def find_server(name: str, home: Path) -> Server:
    """The service at an address, or of a name in `servers.toml` of the home; raises InputError."""
    if name.startswith(("http://", "https://")):
        return Server(url=name, token=os.environ.get(TOKEN, ""))
    entries = read_toml_as(home / "servers.toml", "the list of servers", _File).servers
    if name not in entries:
        raise InputError(f"{unknown('server', name, entries)}; servers.toml in COTRAIL_HOME names them, or give a URL")
    entry = entries[name]
    if entry.token_file:
        return Server(url=entry.url, token=_token_in(home / entry.token_file))
    variable = entry.token_variable or TOKEN
    if entry.token_variable and not os.environ.get(variable):
        raise InputError(f"the environment variable {variable}, which holds the token of {name}, isn't set")
    return Server(url=entry.url, token=os.environ.get(variable, ""))


def _token_in(path: Path) -> str:
    """The token in a file, which others must not be able to read."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(f"others can read {path}, which holds a token; `chmod 600 {path}`")
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise InputError(f"{path}, which holds a token, can't be read ({error.strerror}); check the path") from error
