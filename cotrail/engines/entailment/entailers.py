"""Catalogue of entailers: the built-in ones and the tables `[entailers.NAME]` of a user's `models.toml`."""

import hashlib
from functools import partial
from typing import ClassVar

from msgspec import Struct

from cotrail.common.canonical_json import canonical
from cotrail.core.ports.entailer import ENTAILER, Entailer
from cotrail.core.ports.language_model import Profile
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, OpenModel, ScriptTable
from cotrail.engines.entailment.labels import Label
from cotrail.engines.entailment.prompted import PromptedEntailer, prompted_identity
from cotrail.engines.entailment.scripted import ScriptedEntailer
from cotrail.engines.model_folders import folder_digest, hugging_face_folder
from cotrail.engines.optional_packages import Library


class Transformers(FolderTable, frozen=True, tag="transformers"):
    """A classifier that transformers saved.

    labels: the meaning of its outputs, where its configuration doesn't give it.
    """

    library: ClassVar[Library] = ("transformers", "evidence")

    labels: tuple[Label, Label, Label] | None = None

    def __post_init__(self) -> None:
        if self.labels and len(set(self.labels)) < len(self.labels):
            raise ValueError("the labels are entailment, neutral and contradiction, each once")

    @property
    def digest(self) -> str:
        """See `FolderTable`."""
        return hashlib.sha256(canonical([folder_digest(self.path), self.labels])).hexdigest()

    def load(self, identity: str, profile: Profile) -> Entailer:
        """See `FolderTable`."""
        from cotrail.engines.entailment.transformers import TransformersEntailer

        return TransformersEntailer(self.path, identity, profile, self.labels)


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted entailer; path: its script."""

    scripted = ScriptedEntailer


class Prompted(Struct, frozen=True):
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
        """See `Installable`: every run has a language model."""

    def identity(self, name: str, model: str) -> str:
        """See `OpensEngine`."""
        return prompted_identity(name, model)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Entailer:  # noqa: ARG002 - the model's own
        """See `OpensEngine`."""
        return PromptedEntailer(open_model(), name)


def _published(model: str) -> BuiltIn[Entailer]:
    """A classifier by Nie et al. (2020), whose outputs its description explains, and its configuration doesn't."""
    labels = ("entailment", "neutral", "contradiction")
    return BuiltIn(partial(hugging_face_folder, f"ynie/{model}"), Transformers, {"labels": labels})


ENTAILERS: EngineCatalogue[Entailer] = EngineCatalogue(
    kind=ENTAILER.kind,
    tables=Transformers | Scripted,
    built_in={
        "albert-xxlarge-anli": _published("albert-xxlarge-v2-snli_mnli_fever_anli_R1_R2_R3-nli"),
        "roberta-large-anli": _published("roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"),
        "prompted": Prompted(),
    },
)
"""The paper uses the first of the built-in ones."""
