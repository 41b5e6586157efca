"""The models that there are: the built-in ones and those of `models.toml`. None is loaded, and no server is asked."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.generation import Capability
from cotrail.core.ports.language_model import Profile
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.language_models.catalogue import ModelSpec, catalogue, check_profile, find_model, unknown_model
from cotrail.engines.language_models.providers import provided
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.engines.optional_packages import check_library
from cotrail.engines.registry import CATALOGUES
from cotrail.errors import InputError, NotInstalledError
from cotrail.services.access.grants import grants

State = Literal["found", "missing", "server"]
"""Whether a model's files, and the packages that run it, are there; a server isn't asked."""


class ListedModel(Struct, frozen=True, kw_only=True):
    """A model; kind: of engine, as a role names it; default: whether a run that names none takes it.

    location: its file, folder or URL; empty where a built-in one isn't installed. problem: what is missing.
    """

    name: str
    kind: str
    engine: str
    built_in: bool
    default: bool
    state: State
    location: str
    problem: str


class DescribedModel(ListedModel, frozen=True, kw_only=True):
    """A model with what it can do.

    table: its settings, as `models.toml` has them. profiles: those that it guarantees. capabilities: what actions may
    ask of it beyond the continuation of plain text, with the reason where it can't, else None; empty where the model is
    missing, and of other models than language models.
    """

    table: dict[str, Any]
    profiles: tuple[Profile, ...]
    capabilities: dict[Capability, str | None]


def list_models() -> tuple[ListedModel, ...]:
    """Every model, the language models first; raises InputError where `models.toml` is malformed."""
    return tuple(ListedModel(**_listed(kind, name, engine)) for kind, name, engine in _engines())


def describe_models(name: str) -> tuple[DescribedModel, ...]:
    """The models of that name, which may be of several kinds, or that of PROVIDER/MODEL; raises UnknownNameError."""
    engines = tuple(_engines())
    descriptions = tuple(_described(*each) for each in engines if each[1] == name)
    granted = grants().models
    if not descriptions and provided(name) is not None and (granted is None or name in granted):
        return (_described(LANGUAGE_MODEL, name, find_model(settings().catalogue_path, name).engine),)
    if not descriptions:
        names = dict.fromkeys(each[1] for each in engines)
        raise unknown_model(settings().catalogue_path, name, names)
    return descriptions


def _engines() -> Iterator[tuple[str, str, Any]]:
    granted = grants().models
    yield from (each for each in _every_engine() if granted is None or each[1] in granted)


def _every_engine() -> Iterator[tuple[str, str, Any]]:
    path = settings().catalogue_path
    for name, spec in catalogue(path).items():
        yield LANGUAGE_MODEL, name, spec.engine
    for kind, engines in CATALOGUES.items():
        for name, engine in engines.all(path).items():
            yield kind, name, engine


def _listed(kind: str, name: str, engine: Any) -> dict[str, Any]:
    state, location, problem = _found(engine)
    return {
        "name": name,
        "kind": kind,
        "engine": engine.engine_name,
        "built_in": not _is_table(engine),
        "default": kind == LANGUAGE_MODEL and name == settings().model,
        "state": state,
        "location": location,
        "problem": problem,
    }


def _found(engine: Any) -> tuple[State, str, str]:
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
    table = {key: getattr(engine, key) for key in engine.__struct_fields__ if _is_table(engine) or key == "context"}
    listed, is_model = _listed(kind, name, engine), kind == LANGUAGE_MODEL
    can_tell = is_model and listed["state"] != "missing"
    return DescribedModel(
        **listed,
        table={key: str(value) if isinstance(value, Path) else value for key, value in table.items()},
        profiles=tuple(_profiles(_check_of(kind, name, engine))),
        capabilities={each: _lacks(engine, each) for each in get_args(Capability)} if can_tell else {},
    )


def _check_of(kind: str, name: str, engine: Any) -> Callable[[Profile], None]:
    """What raises InputError for a profile that the engine can't guarantee."""
    if kind == LANGUAGE_MODEL:
        return partial(check_profile, ModelSpec(name=name, engine=engine))
    return NamedEngine(name=name, engine=engine).check_profile


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
    return bool(engine.__struct_config__.tag_field == "engine")
