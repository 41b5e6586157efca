"""Catalogue of extractors: the built-in ones and the tables `[extractors.NAME]` of a user's `models.toml`."""

from functools import partial
from pathlib import Path
from typing import ClassVar

from cotrail.core.ports.extractor import Extractor
from cotrail.core.ports.language_model import Profile
from cotrail.engines.evidence_models import BuiltIn, EvidenceEngine, EvidenceSpec
from cotrail.engines.extraction.scripted import ExtractionScript, ScriptedExtractor
from cotrail.engines.model_folders import folder_digest, hugging_face_folder
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable, choose, listed
from cotrail.engines.optional_packages import Library, installed_with
from cotrail.engines.script_files import read_script, script_identity


class Transformers(EngineTable, frozen=True, tag="transformers"):
    """A reader in transformers in this process, on its GPU if it has one; path: a folder saved by it."""

    library: ClassVar[Library] = ("transformers", "evidence")

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return model_identity(name, folder_digest(self.path))

    def open(self, name: str, profile: Profile) -> Extractor:
        """See `EvidenceEngine`."""
        # Imported on use: PyTorch takes seconds to load, and not every installation has it.
        with installed_with("evidence"):
            from cotrail.engines.extraction.transformers import TransformersExtractor

        return TransformersExtractor(self.path, self.identity(name), profile)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """A scripted extractor; path: its script."""

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return script_identity(read_script(self.path, ExtractionScript), name)

    def open(self, name: str, profile: Profile) -> Extractor:  # noqa: ARG002 - both mean the same here
        """See `EvidenceEngine`."""
        return ScriptedExtractor(self.path, name)


BUILT_IN: dict[str, EvidenceEngine[Extractor]] = {
    "dpr-reader-multiset": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-multiset-base"), Transformers),
    "dpr-reader-nq": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-single-nq-base"), Transformers),
    "roberta-base-squad2": BuiltIn(partial(hugging_face_folder, "deepset/roberta-base-squad2"), Transformers),
}
"""The built-in extractors. None is a default: what a confidence means, and with it a system's threshold, is the
model's."""


def extractors(path: Path) -> dict[str, EvidenceEngine[Extractor]]:
    """Every extractor by name, installed or not; path: `models.toml`. Raises InputError where that is malformed."""
    return BUILT_IN | listed(path, "extractor", Transformers | Scripted, BUILT_IN)


def find_extractor(path: Path, name: str) -> EvidenceSpec[Extractor]:
    """The extractor of that name; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    chosen, engine, _ = choose(path, "extractor", name, Transformers | Scripted, BUILT_IN)
    return EvidenceSpec(name=chosen, engine=engine)
