"""Catalogue of entailers: the built-in ones and the tables `[entailers.NAME]` of a user's `models.toml`."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from cotrail.common.canonical_json import canonical
from cotrail.core.ports.entailer import Entailer
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.engines.entailment.labels import Label
from cotrail.engines.entailment.prompted import PromptedEntailer, prompted_identity
from cotrail.engines.entailment.scripted import EntailmentScript, ScriptedEntailer
from cotrail.engines.model_folders import folder_digest, hugging_face_folder
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable, choose, listed
from cotrail.engines.optional_packages import Library, installed_with
from cotrail.engines.script_files import read_script, script_identity

OpenModel = Callable[[], LanguageModel]
"""Opens the run's own language model; called only if the entailer uses it."""


class EntailerEngine(Protocol):
    """Opens an entailer in one kind of engine."""

    library: ClassVar[Library]

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""

    def identity(self, name: str, model: str) -> str:
        """The identity of the entailer that `open(name, ...)` would return, without loading it.

        model: the identity of the run's language model.
        """

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:
        """The loaded model."""


class Transformers(EngineTable, frozen=True, tag="transformers"):
    """A classifier in transformers in this process, on its GPU if it has one.

    path: a folder saved by transformers; labels: the meaning of its outputs, where its configuration doesn't give it.
    """

    library: ClassVar[Library] = ("transformers", "evidence")

    labels: tuple[Label, Label, Label] | None = None

    def __post_init__(self) -> None:
        if self.labels and len(set(self.labels)) < len(self.labels):
            raise ValueError("the labels are entailment, neutral and contradiction, each once")

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        """See `EntailerEngine`."""
        decides = canonical([folder_digest(self.path), self.labels])
        return model_identity(name, hashlib.sha256(decides).hexdigest())

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:  # noqa: ARG002 - as above
        """See `EntailerEngine`."""
        # Imported on use: PyTorch takes seconds to load, and not every installation has it.
        with installed_with("evidence"):
            from cotrail.engines.entailment.transformers import TransformersEntailer

        return TransformersEntailer(self.path, self.identity(name, ""), profile, self.labels)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """A scripted entailer; path: its script."""

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        """See `EntailerEngine`."""
        return script_identity(read_script(self.path, EntailmentScript), name)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:  # noqa: ARG002 - as above
        """See `EntailerEngine`."""
        return ScriptedEntailer(self.path, name)


class Published(Struct, frozen=True):
    """A classifier by Nie et al. (2020), whose description gives the meaning of its outputs; its configuration doesn't.

    repository: its name on Hugging Face.
    """

    library: ClassVar[Library] = Transformers.library

    repository: str

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return str(Transformers.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its folder; raises NotInstalledError."""
        return str(hugging_face_folder(self.repository))

    def check(self) -> None:
        """See `EntailerEngine`."""
        hugging_face_folder(self.repository)

    def identity(self, name: str, model: str) -> str:
        """See `EntailerEngine`."""
        return self._engine.identity(name, model)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:
        """See `EntailerEngine`."""
        return self._engine.open(name, profile, open_model)

    @property
    def _engine(self) -> Transformers:
        return Transformers(
            path=hugging_face_folder(self.repository), labels=("entailment", "neutral", "contradiction")
        )


class PromptedEngine(Struct, frozen=True):
    """The run's own language model, asked by a prompt."""

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
        """See `EntailerEngine`: every run has a language model."""

    def identity(self, name: str, model: str) -> str:
        """See `EntailerEngine`."""
        return prompted_identity(name, model)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:  # noqa: ARG002 - the model's own
        """See `EntailerEngine`."""
        return PromptedEntailer(open_model(), name)


class EntailerSpec(Struct, frozen=True, kw_only=True):
    """An entailer's name and the engine that runs it.

    instead: a sentence on why it replaces the preferred one; empty where it doesn't.
    """

    name: str
    engine: EntailerEngine
    instead: str = ""

    @property
    def asks_model(self) -> bool:
        """Return whether the run's own language model judges."""
        return isinstance(self.engine, PromptedEngine)

    def identity(self, model: str) -> str:
        """The identity of the opened entailer, without loading it; raises InputError, NotInstalledError.

        model: the identity of the run's language model.
        """
        return self.engine.identity(self.name, model)

    def open(self, profile: Profile, open_model: OpenModel) -> Entailer:
        """The loaded model; raises InputError, NotInstalledError, and whatever `open_model` raises."""
        return self.engine.open(self.name, profile, open_model)


BUILT_IN: dict[str, EntailerEngine] = {
    "albert-xxlarge-anli": Published("ynie/albert-xxlarge-v2-snli_mnli_fever_anli_R1_R2_R3-nli"),
    "roberta-large-anli": Published("ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"),
    "prompted": PromptedEngine(),
}
"""The built-in entailers; the first one that is installed is the default. The paper uses the first."""


def entailers(path: Path) -> dict[str, EntailerEngine]:
    """Every entailer by name, installed or not; path: `models.toml`. Raises InputError where that is malformed."""
    return BUILT_IN | listed(path, "entailer", Transformers | Scripted, BUILT_IN)


def find_entailer(path: Path, name: str | None) -> EntailerSpec:
    """The entailer of that name, or the default one where None; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    chosen, engine, instead = choose(path, "entailer", name, Transformers | Scripted, BUILT_IN)
    return EntailerSpec(name=chosen, engine=engine, instead=instead)
