"""Asking a served model what it takes, for the table of `models.toml` that fits it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.redaction import Secrets
from cotrail.configuration.settings import settings
from cotrail.core.money import ModelPrice, Spent, Usage, shown_dollars
from cotrail.engines.language_models.catalogue import (
    DEFAULT_CONTEXT,
    Server,
    find_model,
    make_server,
    served_table,
)
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.prices import price_of
from cotrail.engines.optional_packages import check_library
from cotrail.engines.server_address import key_in
from cotrail.errors import InputError, NotInstalledError

UNNAMED = "unnamed"
"""Stands for the name of a model that the server is still to tell."""


class AskedModel(Struct, frozen=True, kw_only=True):
    """What a served model takes.

    table: for `models.toml`; reasons: why, in lines, by its settings. toml: both, as they are written there.
    requests: how many were sent; spent: what they took. notes: what else was learned.
    """

    name: str
    table: Mapping[str, Any]
    reasons: Mapping[str, tuple[str, ...]]
    toml: str
    requests: int
    spent: Spent
    notes: tuple[str, ...]


def ask_model(name: str, tell: Callable[[str], None]) -> AskedModel:
    """Sends the model a few dozen small requests at most; tell: takes a line on each.

    Its table may lack all but `engine` and `url`. Raises InputError where it isn't behind a server, or nothing
    answers there, and UnknownNameError.
    """
    path = settings().catalogue_path
    given = _table(path, name)
    server = _server(path, name, {"model": UNNAMED, "context": DEFAULT_CONTEXT, **given})
    secrets = Secrets((_key(name, server),))
    table, named = _completed(path, name, given, server)
    server = _server(path, name, table)

    from cotrail.engines.language_models.served.probing.learning import apis_to_try, learn
    from cotrail.engines.language_models.served.probing.proposal import as_toml

    endpoint = _endpoint(server)
    apis = apis_to_try(endpoint, named="api" in table or table["engine"] != "openai")
    found = learn(name, endpoint, apis, lambda line: tell(secrets.hidden(line)))
    reasons = {key: tuple(map(secrets.hidden, lines)) for key, lines in {**named, **found.reasons}.items()}
    settled = _settled(table, found.settings)
    spent = _spent(name, endpoint, found.usage)
    notes = tuple(map(secrets.hidden, found.notes))
    made = f"Made by `cotrail models {name} --ask` on {datetime.now(UTC):%Y-%m-%d}: {in_words(found.requests, spent)}."
    return AskedModel(
        name=name,
        table=settled,
        reasons={key: reasons[key] for key in settled if reasons.get(key)},
        toml=as_toml(name, settled, reasons, (made, *notes)),
        requests=found.requests,
        spent=spent,
        notes=notes,
    )


def in_words(requests: int, spent: Spent) -> str:
    """What asking took: `14 requests, 812 tokens read, 402 written, $0.0004`."""
    usage = spent.usage
    parts = [count(requests, "request"), f"{usage.input_tokens:,} tokens read", f"{usage.output_tokens:,} written"]
    return ", ".join([*parts, *filter(None, [shown_dollars(spent)])])


def _table(path: Path, name: str) -> dict[str, Any]:
    table = served_table(path, name)
    if table is not None:
        return table
    engine: Any = find_model(path, name).engine
    raise InputError(
        f"the model {name} isn't behind a server ({engine.engine_name}), so there is nobody to ask; `cotrail models "
        f"{name}` says what is known of it"
    )


def _server(path: Path, name: str, table: dict[str, Any]) -> Server:
    server = make_server(path, name, table)
    try:
        check_library(server)
    except NotInstalledError as error:
        raise InputError(f"the model {name} can't be asked here: {error}") from error
    return server


def _key(name: str, server: Server) -> str:
    variable = server.key_variable
    key = key_in(variable) if variable else ""
    if variable and not key:
        raise InputError(f"the model {name} needs a key, and the environment variable {variable} holds none: set it")
    return key


def _endpoint(server: Server) -> Endpoint:
    return Endpoint(**{name: getattr(server, name) for name in Endpoint.__struct_fields__})


def _completed(
    path: Path, name: str, given: dict[str, Any], server: Server
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The table with its model and its context, and where they are from; of the latter the server's is the most."""
    from cotrail.engines.language_models.served.probing.listing import listed_models

    listed = {each.name: each for each in listed_models(_endpoint(server))}
    model, reasons = given.get("model"), dict[str, list[str]]()
    if model is None:
        if len(listed) != 1:
            there = f"it lists {', '.join(sorted(listed)[:20])}" if listed else "it doesn't list its models"
            raise InputError(f"{path}: the model {name} has no `model`, the name by which its server knows it; {there}")
        model = next(iter(listed))
        reasons["model"] = ["the one that its server lists"]
    told, context = listed[model].context if model in listed else 0, given.get("context")
    if told and not (isinstance(context, int) and context <= told):
        reasons["context"], context = ["what its server lists"], told
    if context is None:
        reasons["context"], context = ["nobody tells it: correct it"], DEFAULT_CONTEXT
    return {"model": model, "context": context} | given | {"context": context}, reasons


def _settled(table: Mapping[str, Any], learned: Mapping[str, Any]) -> dict[str, Any]:
    """The table with what was learned, its first fields first."""
    first = ("engine", "url", "model", "context", "api", "key_variable")
    settled = {key: value for key, value in {**table, **learned}.items() if value is not None}
    ordered = {key: settled[key] for key in first if key in settled} | settled
    return dict(msgspec.to_builtins(ordered))


def _spent(name: str, endpoint: Endpoint, usage: Usage) -> Spent:
    price = price_of(endpoint, datetime.now(UTC))
    if price is None:
        return Spent(usage=usage, unpriced=(name,) if endpoint.is_hosted else ())
    return Spent(usage=usage, dollars=_cost(price, usage))


def _cost(price: ModelPrice, usage: Usage) -> Any:
    return price.of_prompt(usage.input_tokens // max(usage.calls, 1)).cost(usage)
