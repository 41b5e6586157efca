"""The models that there are: the built-in ones and those of `models.toml`. None is loaded, and no server is asked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.log_formatting import Secrets
from cotrail.common.optional_packages import check_library
from cotrail.common.structs import common_fields
from cotrail.common.text_files import write_whole
from cotrail.configuration.settings import settings
from cotrail.core.generation import Capability
from cotrail.core.money import Spent, Usage, shown_dollars
from cotrail.core.ports.language_model import Profile
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.engine_kinds import CATALOGUES
from cotrail.engines.language_models import catalogue as specs
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import PROVIDERS, price_of, provided
from cotrail.engines.models_file import LANGUAGE_MODEL, Malformed, strays, tables_of
from cotrail.engines.server_address import key_in
from cotrail.errors import InputError, NotInstalledError
from cotrail.services.access.grants import grants
from cotrail.services.access.projects import seen_place, without_places
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation

State = Literal["found", "missing", "server", "malformed"]
"""Whether a model's files, and the packages that run it, are there; a server isn't asked. `malformed`: its table makes
no model, whatever is there."""


class ListedModel(Struct, frozen=True, kw_only=True):
    """A model; kind: of engine, as a role names it; default: whether a run that names none takes it.

    location: its file, folder or URL; empty where a built-in one isn't installed. problem: what is missing, or wrong
    with its table.
    """

    name: str
    kind: str
    engine: str
    built_in: bool
    default: bool
    state: State
    location: str
    problem: str

    @property
    def is_there(self) -> bool:
        """Return whether it can be asked, as far as that shows without asking it."""
        return self.state in ("found", "server")


class DescribedModel(ListedModel, frozen=True, kw_only=True):
    """A model with what it can do.

    table: its settings, as `models.toml` has them. profiles: those that it guarantees. capabilities: what actions may
    ask of it beyond the continuation of plain text, with the reason where it can't, else None; empty where the model is
    missing or malformed, and of other models than language models.
    """

    table: dict[str, Any]
    profiles: tuple[Profile, ...]
    capabilities: dict[Capability, str | None]


@operation("models.index", "GET", "/language-models", Scope.READ)
def list_models() -> tuple[ListedModel, ...]:
    """List the models: built-in ones, and those of the server's `models.toml`."""
    # The language models come first. Raises InputError where `models.toml` isn't TOML.
    return tuple(ListedModel(**_listed(kind, name, engine)) for kind, name, engine in _engines())


@operation("models.show", "GET", "/language-models/{model}", Scope.READ)
def describe_models(model: str) -> tuple[DescribedModel, ...]:
    """Show the models of a name, which may be of several kinds: their settings, and what they can do."""
    # The name may be PROVIDER/MODEL.
    engines = tuple(_engines())
    descriptions = tuple(_described(*each) for each in engines if each[1] == model)
    granted = grants().models
    if not descriptions and provided(model) is not None and (granted is None or model in granted):
        return (_described(LANGUAGE_MODEL, model, specs.find_model(settings().catalogue_path, model).engine),)
    if not descriptions:
        names = dict.fromkeys(model for kind, model, _ in engines if kind in (LANGUAGE_MODEL, *CATALOGUES))
        raise specs.unknown_model(settings().catalogue_path, model, names)
    return descriptions


def _engines() -> Iterator[tuple[str, str, Any]]:
    granted = grants().models
    yield from (each for each in _every_engine() if granted is None or each[1] in granted)


def _every_engine() -> Iterator[tuple[str, str, Any]]:
    path = settings().catalogue_path
    for name, spec in specs.catalogue(path).items():
        yield LANGUAGE_MODEL, name, spec.engine
    for kind, engines in CATALOGUES.items():
        for name, engine in engines.all(path).items():
            yield kind, name, engine
    for key, stray in strays(path).items():
        yield key, key, stray


def _listed(kind: str, name: str, engine: Any) -> dict[str, Any]:
    state, location, problem = _found(engine)
    return {
        "name": name,
        "kind": kind,
        "engine": engine.engine_name,
        "built_in": not _is_table(engine),
        "default": kind == LANGUAGE_MODEL and name == settings().model,
        "state": state,
        "location": seen_place(location),
        "problem": without_places(problem),
    }


def _found(engine: Any) -> tuple[State, str, str]:
    if isinstance(engine, Malformed):
        return "malformed", "", engine.problem
    try:
        location = engine.location
    except NotInstalledError as error:
        return "missing", "", str(error)
    try:
        engine.check()
        check_library(engine)
    except (InputError, NotInstalledError) as error:
        return "missing", location, str(error)
    if location.startswith(("http://", "https://")):
        return "server", location, ""
    if _is_table(engine) and not Path(location).exists():
        return "missing", location, "there is no such file or folder; correct its path"
    return "found", location, ""


def _described(kind: str, name: str, engine: Any) -> DescribedModel:
    fields = engine.__struct_fields__
    table = {key: getattr(engine, key) for key in fields if _has_settings(engine) or key == "context"}
    listed, is_model = _listed(kind, name, engine), kind == LANGUAGE_MODEL
    is_there = ListedModel(**listed).is_there
    own = partial(specs.check_profile, specs.ModelSpec(name=name, engine=engine)) if is_model else None
    check = own or NamedEngine(name=name, engine=engine).check_profile
    return DescribedModel(
        **listed,
        table={
            key: without_places(str(value)) if isinstance(value, Path | str) else value for key, value in table.items()
        },
        profiles=() if listed["state"] == "malformed" else tuple(_profiles(check)),
        capabilities={each: _lacks(engine, each) for each in get_args(Capability)} if is_there and is_model else {},
    )


def _profiles(check: Callable[[Profile], None]) -> Iterator[Profile]:
    for profile in get_args(Profile):
        try:
            check(profile)
        except InputError:
            continue
        yield profile


def _lacks(engine: Any, capability: Capability) -> str | None:
    """Why the model lacks the capability, behind `it`; its template may be unreadable."""
    try:
        lacking: str | None = engine.lacks(capability)
    except (InputError, NotInstalledError) as error:
        return f"can't be looked at: {error}"
    return lacking


def _is_table(engine: Any) -> bool:
    return isinstance(engine, Malformed) or _has_settings(engine)


def _has_settings(engine: Any) -> bool:
    return bool(engine.__struct_config__.tag_field == "engine")


# Asking a served model what it takes, for the table of `models.toml` that fits it.

UNNAMED = "unnamed"
"""Stands for the name of a model that the server is still to tell."""

MOST_NAMED = 20
"""The models of a server that a message names at most."""


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


def add_model(name: str, given: Mapping[str, Any], tell: Callable[[str], None]) -> AskedModel:
    """Ask a model what it takes, and write the table that fits it into `models.toml`, behind those that are there.

    given: `engine`, `url` and `key_variable` of its table, as far as they are known. Raises what `ask_model` does, and
    InputError where there is a table of that name.
    """
    path = settings().catalogue_path
    if name in tables_of(path, LANGUAGE_MODEL):
        raise InputError(f"{path} has a table of the model {name} already; name it otherwise, or remove that one")
    asked = ask_model(name, tell, given)
    before = path.read_text("utf-8").rstrip("\n") + "\n\n" if path.exists() else ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [(before + asked.toml).encode()])
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); check the folder and its permissions") from error
    return asked


def ask_model(name: str, tell: Callable[[str], None], given: Mapping[str, Any] | None = None) -> AskedModel:
    """Sends the model a few dozen small requests at most; tell: takes a line on each.

    Its table, or the one that is given, may lack all but `engine` and `url`. Raises InputError where it isn't behind a
    server, or nothing answers there, and UnknownNameError.
    """
    path = settings().catalogue_path
    asked = dict(given or _table(path, name))
    tell(f"asking {asked['url']} what it is" if "url" in asked else f"asking {name} what it is")
    table, named, server = _described_server(path, name, asked)
    secrets = Secrets((_key(name, server),))

    from cotrail.engines.language_models.served.probing.learning import apis_to_try, as_toml, learn

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


def check_model(name: str) -> Profile:
    """Check that a model can be asked: its files are there, or its server answers a small request.

    Returns the strictest profile that it guarantees.

    Raises InputError, which says what to do, UnknownNameError, and NotInstalledError where a package is missing.
    """
    path = settings().catalogue_path
    table = specs.served_table(path, name)
    if table is None:
        [found] = [each for each in describe_models(name) if each.kind == LANGUAGE_MODEL]
        if not found.is_there:
            raise InputError(f"the model {name} can't be asked: {found.problem}")
        return "deterministic" if "deterministic" in found.profiles else "fast"
    _, _, server = _described_server(path, name, table)

    from cotrail.engines.language_models.served.probing.learning import check_answers

    check_answers(name, _endpoint(server))
    return "fast"


def keyed_providers() -> tuple[str, ...]:
    """Return the providers whose key is in the environment."""
    servers = {name: specs.make_server(Path(), name, provider.of(UNNAMED)) for name, provider in PROVIDERS.items()}
    variables = {name: server.key_variable for name, server in servers.items()}
    return tuple(name for name, variable in variables.items() if variable and key_in(variable))


def in_words(requests: int, spent: Spent) -> str:
    """What asking took: `14 requests, 812 tokens read, 402 written, $0.0004`."""
    usage = spent.usage
    parts = [count(requests, "request"), f"{usage.input_tokens:,} tokens read", f"{usage.output_tokens:,} written"]
    return ", ".join([*parts, *filter(None, [shown_dollars(spent)])])


def _described_server(
    path: Path, name: str, given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, list[str]], specs.Server]:
    """What `_completed` returns of a table, and the server that it makes; InputError where the key isn't set."""
    server = _server(path, name, {"model": UNNAMED, "context": specs.DEFAULT_CONTEXT, **given})
    _key(name, server)
    table, named = _completed(name, given, server)
    return table, named, _server(path, name, table)


def _table(path: Path, name: str) -> dict[str, Any]:
    table = specs.served_table(path, name)
    if table is not None:
        return table
    engine: Any = specs.find_model(path, name).engine
    raise InputError(
        f"the model {name} isn't behind a server ({engine.engine_name}), so there is nobody to ask; `cotrail models "
        f"{name}` says what is known of it"
    )


def _server(path: Path, name: str, table: dict[str, Any]) -> specs.Server:
    server = specs.make_server(path, name, table)
    try:
        check_library(server)
    except NotInstalledError as error:
        raise InputError(f"the model {name} can't be asked here: {error}") from error
    return server


def _key(name: str, server: specs.Server) -> str:
    variable = server.key_variable
    key = key_in(variable) if variable else ""
    if variable and not key:
        raise InputError(f"the model {name} needs a key, and the environment variable {variable} holds none: set it")
    return key


def _endpoint(server: specs.Server) -> Endpoint:
    return Endpoint(**common_fields(server, Endpoint))


def _completed(name: str, given: dict[str, Any], server: specs.Server) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The table with its model and its context, and where they are from; of the latter the server's is the most."""
    from cotrail.engines.language_models.served.probing.learning import listed_models

    model, reasons = given.get("model"), dict[str, list[str]]()
    try:
        listed = {each.name: each for each in listed_models(_endpoint(server))}
    except InputError as error:  # not all servers list their models, and a name is all that is needed
        if model is None:
            raise InputError(f"{error}. If it lists no models, name the one that it has with --model") from error
        listed = {}
    if model is None:
        if len(listed) != 1:
            raise InputError(_choice(name, server.url, sorted(listed)))
        model = next(iter(listed))
        reasons["model"] = ["the one that its server lists"]
    listed_context, context = listed[model].context if model in listed else 0, given.get("context")
    is_assumed = given == provided(name)
    if listed_context and (is_assumed or not (isinstance(context, int) and context <= listed_context)):
        reasons["context"], context = ["what its server lists"], listed_context
    if context is None:
        reasons["context"], context = ["nobody tells it: correct it"], specs.DEFAULT_CONTEXT
    return {"model": model, "context": context} | given | {"context": context}, reasons


def _choice(name: str, url: str, listed: Sequence[str]) -> str:
    if not listed:
        return f"{url} lists no model: name the one that it has with --model, or as `model` of the table of {name}"
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return (
        f"{url} has {len(listed)} models: name one with --model, or as `model` of the table of {name}: "
        f"{', '.join(listed[:MOST_NAMED])}{more}"
    )


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
    of_prompt = price.of_prompt(usage.input_tokens // max(usage.calls, 1))
    return Spent(usage=usage, dollars=of_prompt.cost(usage))
