"""Catalogue of raters: the built-in ones and the tables `[raters.NAME]` of a user's `models.toml`."""

from functools import partial
from pathlib import Path
from typing import ClassVar

from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.rater import Rater
from cotrail.engines.evidence_models import BuiltIn, EvidenceEngine, EvidenceSpec
from cotrail.engines.model_folders import folder_digest, hugging_face_folder
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable, choose, listed
from cotrail.engines.optional_packages import Library, installed_with
from cotrail.engines.rating.scripted import RatingScript, ScriptedRater
from cotrail.engines.script_files import read_script, script_identity


class CrossEncoders(EngineTable, frozen=True, tag="sentence-transformers"):
    """A cross-encoder in this process, on its GPU if it has one; path: a folder saved by sentence-transformers."""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return model_identity(name, folder_digest(self.path))

    def open(self, name: str, profile: Profile) -> Rater:
        """See `EvidenceEngine`."""
        # Imported on use: PyTorch takes seconds to load, and not every installation has it.
        with installed_with("evidence"):
            from cotrail.engines.rating.cross_encoder import CrossEncoderRater

        return CrossEncoderRater(self.path, self.identity(name), profile)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """A scripted rater; path: its script."""

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return script_identity(read_script(self.path, RatingScript), name)

    def open(self, name: str, profile: Profile) -> Rater:  # noqa: ARG002 - both mean the same here
        """See `EvidenceEngine`."""
        return ScriptedRater(self.path, name)


BUILT_IN: dict[str, EvidenceEngine[Rater]] = {
    "quora-roberta-large": BuiltIn(partial(hugging_face_folder, "cross-encoder/quora-roberta-large"), CrossEncoders),
    "quora-distilroberta-base": BuiltIn(
        partial(hugging_face_folder, "cross-encoder/quora-distilroberta-base"), CrossEncoders
    ),
    "ms-marco-minilm-l6-v2": BuiltIn(
        partial(hugging_face_folder, "cross-encoder/ms-marco-MiniLM-L6-v2"), CrossEncoders
    ),
}
"""The built-in raters: two of duplicates, and one of relevance. None is a default: what a score means, and with it a
system's threshold, is the model's."""


def raters(path: Path) -> dict[str, EvidenceEngine[Rater]]:
    """Every rater by name, installed or not; path: `models.toml`. Raises InputError where that is malformed."""
    return BUILT_IN | listed(path, "rater", CrossEncoders | Scripted, BUILT_IN)


def find_rater(path: Path, name: str) -> EvidenceSpec[Rater]:
    """The rater of that name; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    chosen, engine, _ = choose(path, "rater", name, CrossEncoders | Scripted, BUILT_IN)
    return EvidenceSpec(name=chosen, engine=engine)
