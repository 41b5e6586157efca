"""Catalogues of engines: those of one kind, which are the built-in ones and the tables of a user's `models.toml`.

Tables have in common that they are models in folders, models behind servers, or scripts; built-in ones are published
models.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct

from cotrail.common.nearest import unknown
from cotrail.common.optional_packages import Library, installed_with
from cotrail.common.structs import canonical
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.engines.model_folders import check_saved, folder_digest, model_identity
from cotrail.engines.models_file import EngineTable, listed, strays_in_words, usable
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.engines.script_files import ScriptedEngine
from cotrail.errors import InputError, NotInstalledError, PromptTooLongError, UnknownNameError

Item = TypeVar("Item")
Value = TypeVar("Value")

AT_ONCE = 8
"""What is asked concurrently; models with fewer slots queue the others."""


class Prompted(Struct, frozen=True):
    """The run's own language model, asked by a prompt.

    prompt: the whole of what decides the answers, for the identity; opens: makes the engine of the model and of its own
    identity.
    """

    prompt: Sequence[Any]
    opens: Callable[[LanguageModel, str], Any]

    library: ClassVar[Library] = None

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return "prompted"

    @property
    def location(self) -> str:
        """What stands where others have a file."""
        return "the run's language model"

    def check(self) -> None:
        """See `Installable`: every run has a language model."""

    def identity(self, name: str, model: str) -> str:
        """See `OpensEngine`: that of the prompt, and that of the language model."""
        return f"{model_identity(name, hashlib.sha256(canonical(self.prompt)).hexdigest())}+{model}"

    def open(self, name: str, profile: Profile, open_model: Callable[[], LanguageModel]) -> Any:  # noqa: ARG002 - the model's own
        model = open_model()
        return self.opens(model, self.identity(name, model.identity))


def probabilities(
    model: LanguageModel, prompt: Callable[[str], str], text: str, choices: Sequence[str]
) -> tuple[float, ...]:
    """The probabilities of these answers to a prompt about a text, which is cut at its end where it is too long."""
    try:
        return model.probabilities(prompt(text), choices)
    except PromptTooLongError:
        if not text:
            raise
        # Halved until it fits: the port doesn't count tokens.
        return probabilities(model, prompt, text[: len(text) // 2], choices)


def each_once(judge: Callable[[Item], Value], items: Iterable[Item]) -> dict[Item, Value]:
    """What is judged of each of these, several at once, and equal ones once."""
    distinct = list(dict.fromkeys(items))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(distinct, pool.map(judge, distinct), strict=True))


OpenModel = Callable[[], LanguageModel]
"""Opens the run's own language model; called only by an engine that asks it."""


def no_model() -> LanguageModel:
    """Takes the place of `OpenModel` outside of runs; raises InputError."""
    raise InputError("this engine asks the language model of a run, and there is none")


OpenedT = TypeVar("OpenedT", covariant=True)


class Installable(Protocol):
    """An engine that may or may not be installed on this machine."""

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""


class OpensEngine(Installable, Protocol[OpenedT]):
    """Opens an engine."""

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""

    def identity(self, name: str, model: str) -> str:
        """The identity of the engine that `open(name, ...)` would return, without loading it.

        model: the identity of the run's language model, which counts for an engine that asks it.
        """

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> OpenedT:
        """The loaded engine."""


class FolderTable(EngineTable, frozen=True):
    """A model in this process, on its GPU if it has one; see `OpensEngine`.

    path: the folder that a library saved it to. A table derived from it says what `load` returns; the extra `evidence`
    installs its library.
    """

    def load(self, identity: str, profile: Profile) -> Any:
        """The model of that identity. It imports its library here, which takes seconds and may not be installed."""
        raise NotImplementedError

    def check(self) -> None:
        """See `Installable`; raises InputError where its files are damaged."""
        check_saved(self.path)

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides the model's output; raises InputError."""
        return folder_digest(self.path)

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        return model_identity(name, self.digest)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Any:  # noqa: ARG002 - as above
        with installed_with("evidence"):
            return self.load(model_identity(name, self.digest), profile)


class ScriptTable(EngineTable, frozen=True):
    """A scripted engine, an `OpensEngine`; path: its script."""

    scripted: ClassVar[type[ScriptedEngine[Any]]]

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        return self.scripted(self.path, name).identity

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Any:  # noqa: ARG002 - profiles mean the same
        return self.scripted(self.path, name)


class ServerTable:
    """Makes an `OpensEngine` of a `TextServer`, from which a table derives too; it says what `load` returns."""

    __slots__ = ()

    library: ClassVar[Library] = ("httpx2", "openai")

    url: str
    digest: str

    def load(self, identity: str, limiter: RateLimiter) -> Any:
        """The model of that identity; limiter: shares out what its account may use. It imports its library here."""
        raise NotImplementedError

    @property
    def engine_name(self) -> str:
        return "server"

    @property
    def location(self) -> str:
        """Its URL."""
        return self.url

    def check(self) -> None:
        """See `Installable`: no server is asked."""

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model of the run's
        return model_identity(name, self.digest)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Any:  # noqa: ARG002 - as above
        return self.connect(name, ProcessLimiter())

    def connect(self, name: str, limiter: RateLimiter) -> Any:
        """The model; limiter: shares out what its account may use. Raises NotInstalledError, BlockedError."""
        with installed_with("openai"):
            return self.load(model_identity(name, self.digest), limiter)


class BuiltIn(Struct, Generic[OpenedT], frozen=True):
    """A published model; see `OpensEngine`.

    folder: returns its folder, or raises NotInstalledError; table: the class of a table with that folder as its `path`.
    fields: the table's other fields.
    """

    folder: Callable[[], Path]
    table: type[Any]
    fields: Mapping[str, Any] = {}

    @property
    def library(self) -> Library:
        library: Library = self.table.library
        return library

    @property
    def engine_name(self) -> str:
        return str(self.table.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its folder; raises NotInstalledError."""
        return str(self.folder())

    def check(self) -> None:
        self.folder()

    def identity(self, name: str, model: str) -> str:
        return self._opened.identity(name, model)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> OpenedT:
        return self._opened.open(name, profile, open_model)

    @property
    def _opened(self) -> OpensEngine[OpenedT]:
        table: OpensEngine[OpenedT] = self.table(path=self.folder(), **self.fields)
        return table


class EngineCatalogue(Struct, Generic[OpenedT], frozen=True, kw_only=True):
    """The engines of one kind.

    kind: as roles name it. tables: the classes of its tables in `models.toml`, a union, by their `engine`.
    built_in: those that need no table, by name; where a role has a default, it is the first that is installed.
    """

    kind: str
    tables: Any
    built_in: Mapping[str, OpensEngine[OpenedT]] = {}

    def all(self, path: Path) -> dict[str, OpensEngine[OpenedT]]:
        """Every engine by name, installed or not; `Malformed` stands for tables that make none. path: `models.toml`.

        Raises InputError where that isn't TOML.
        """
        return {**self.built_in, **listed(path, self.kind, self.tables, self.built_in)}

    def find(self, path: Path, name: str | None = None) -> "NamedEngine[OpenedT]":
        """The engine of that name, or the default one where None; path: `models.toml`.

        Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
        """
        engines = self.all(path)
        if name is None:
            default, instead = preferred(self.built_in)
            return NamedEngine(name=default, engine=usable(engines[default]), instead=instead)
        if name not in engines:
            raise self.unknown(path, name, engines)
        engines[name].check()
        return NamedEngine(name=name, engine=engines[name])

    def unknown(self, path: Path, name: str, names: Iterable[str]) -> UnknownNameError:
        """The error for an engine that isn't among these names."""
        there = f"{unknown(self.kind, name, sorted(names))}{strays_in_words(path)}"
        return UnknownNameError(f"{there}; add it to {path} as a table [{self.kind}s.{name}]")


class NamedEngine(Struct, Generic[OpenedT], frozen=True, kw_only=True):
    """An engine under the name that it has in its catalogue.

    instead: a sentence on why it replaces the preferred one; empty where it doesn't.
    """

    name: str
    engine: OpensEngine[OpenedT]
    instead: str = ""

    def identity(self, model: str = "") -> str:
        """The identity of the opened engine, without loading it; raises InputError, NotInstalledError.

        model: the identity of the run's language model.
        """
        return self.engine.identity(self.name, model)

    def check_profile(self, profile: Profile) -> None:
        """Raises InputError where the engine can't guarantee the profile."""
        if profile == "deterministic" and isinstance(self.engine, ServerTable):
            raise InputError(
                f"{self.name} is behind a server, which doesn't promise the same numbers for the same texts whatever "
                "else it is asked: take the profile fast, or a model that cotrail's own workers run"
            )

    def open(self, profile: Profile, open_model: OpenModel = no_model, limiter: RateLimiter | None = None) -> OpenedT:
        """The loaded engine; raises InputError, NotInstalledError, and what `open_model` raises.

        limiter: shares out what the accounts of hosted models may use; by default each model has its own.
        """
        self.check_profile(profile)
        if limiter is not None and isinstance(self.engine, ServerTable):
            opened: OpenedT = self.engine.connect(self.name, limiter)
            return opened
        return self.engine.open(self.name, profile, open_model)


def preferred(engines: Mapping[str, Installable]) -> tuple[str, str]:
    """The first installed engine, and a sentence on why those before it weren't taken; empty where it is the first.

    Raises NotInstalledError where none is installed.
    """
    reasons = []
    for name, engine in engines.items():
        try:
            engine.check()
        except NotInstalledError as error:
            reasons.append(str(error))
        else:
            return name, f"{name} stands in for {next(iter(engines))}: {'; '.join(reasons)}" if reasons else ""
    raise NotInstalledError(f"none of {', '.join(engines)} is installed: {'; '.join(reasons)}")
