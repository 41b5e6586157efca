"""The systems that there are: what each is, its settings and what they mean, and what it needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect

from cotrail.common.refusals import choices, parts
from cotrail.common.structs import dotted, field_meanings
from cotrail.errors import InputError
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import Needs, SystemSpec


class ListedSystem(Struct, frozen=True, kw_only=True):
    """A system in its newest version; meaning: what it does, in a sentence."""

    name: str
    title: str
    version: int
    meaning: str
    paper: str


class Setting(Struct, frozen=True, kw_only=True):
    """A setting by its dotted path; type: in words; choices: all values where these are few."""

    name: str
    type: str
    default: Any
    choices: tuple[str, ...]
    meaning: str


class DescribedSystem(ListedSystem, frozen=True, kw_only=True):
    """A system with its settings.

    words: the names of its prompts.

    needs: what a run with the default settings needs, in words; released: the settings that `rules = "released"` sets,
    by dotted path; ablations: settings by what they leave out.
    """

    settings: tuple[Setting, ...]
    needs: tuple[str, ...]
    released: dict[str, Any]
    ablations: dict[str, dict[str, Any]]
    words: tuple[str, ...]


@operation("systems.index", "GET", "/systems", Scope.READ)
def list_systems() -> tuple[ListedSystem, ...]:
    """List the systems."""
    # In the order of the papers' tables; those of files, which this process has met, aren't there for anybody else.
    names = dict.fromkeys(spec.name for spec in SYSTEMS if "@" not in spec.name)
    return tuple(ListedSystem(**_listed(find_system(name))) for name in names)


@operation("systems.show", "GET", "/systems/{system}", Scope.READ)
def describe_system(system: str) -> DescribedSystem:
    """Show a system: all settings with their defaults and meanings."""
    spec = find_system(system)
    return DescribedSystem(
        **_listed(spec),
        settings=tuple(_settings(spec.settings, spec.settings())),
        needs=tuple(_needs(spec.needs(spec.settings()))),
        released=dict(dotted(spec.rule_settings("released", instructed=False))),
        words=tuple(spec.needs(spec.settings()).words),
        ablations={what: dict(changes) for what, changes in spec.ablations.items()},
    )


def write_words(name: str, folder: Path) -> tuple[Path, ...]:
    """Write the words of the system's prompts to files of this folder, for a run to bring them changed (`prompt`).

    Raises UnknownNameError; InputError where the system has none, or one of the files is there already.
    """
    spec = find_system(name)
    words = spec.needs(spec.settings()).words
    if not words:
        raise InputError(f"the prompts of the system {name} are demonstrations alone; bring others as `demonstrations`")
    paths = {folder / f"{each}.txt": text for each, text in words.items()}
    if there := [path for path in paths if path.exists()]:
        raise InputError(f"{there[0]} is there already; name an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        path.write_text(f"{text}\n", "utf-8")
    return tuple(paths)


def _listed(spec: SystemSpec) -> dict[str, Any]:
    meaning = spec.meaning or (spec.open.__doc__ or "").split("\n\n")[0]
    same = {name: getattr(spec, name) for name in ("name", "title", "version", "paper")}
    return same | {"meaning": " ".join(meaning.split())}


def _settings(of: type[Struct], defaults: Struct, prefix: str = "") -> Iterator[Setting]:
    meanings = field_meanings(of)
    for field in inspect.type_info(of).fields:  # type: ignore[attr-defined]
        default = getattr(defaults, field.name)
        if isinstance(default, Struct):
            yield from _settings(type(default), default, f"{prefix}{field.encode_name}.")
            continue
        yield Setting(
            name=f"{prefix}{field.encode_name}",
            type=_type(field.type),
            default=msgspec.to_builtins(default),
            choices=_choices(field.type),
            meaning=meanings.get(field.name, ""),
        )


def _choices(type_: inspect.Type) -> tuple[str, ...]:
    """The choices of a type, or of the entries of a list."""
    entries = (each.item_type if isinstance(each, inspect.VarTupleType) else each for each in parts(type_))
    return tuple(choice for entry in entries for each in parts(entry) for choice in choices(each))


def _type(type_: inspect.Type) -> str:
    """The type in words; that a setting may be left out goes without saying."""
    return " or ".join(_part(each) for each in parts(type_) if not isinstance(each, inspect.NoneType))


def _part(type_: inspect.Type) -> str:
    match type_:
        case inspect.VarTupleType(item_type=inner):
            return f"list of {_type(inner)}"
        case inspect.LiteralType():
            return "choice"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"whole number{_bounds(type_)}"
        case inspect.FloatType():
            return f"number{_bounds(type_)}"
    return "text"


def _bounds(type_: inspect.IntType | inspect.FloatType) -> str:
    if type_.ge is not None and type_.le is not None:
        return f" from {type_.ge} to {type_.le}"
    return f" from {type_.ge}" if type_.ge is not None else ""


def _needs(needs: Needs) -> Iterator[str]:
    """What a run has to name or have, in words."""
    if needs.corpus:
        yield "a corpus"
    if forms := ", ".join(sorted(needs.forms)):
        yield f"demonstrations, if any, in the form {forms}"
    if needs.knowledge:
        yield f"the knowledge sources {', '.join(needs.knowledge)}"
    for role in needs.engines:
        yield f"a model as {role.name}{', or the default one' if role.has_default else ''}"
    if needs.samples:
        yield "several chains of each question, which only the profile deterministic repeats exactly"
    if needs.capabilities:
        yield f"a language model that can do {', '.join(sorted(needs.capabilities))}"
