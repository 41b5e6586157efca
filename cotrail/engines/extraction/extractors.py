"""Catalogue of extractors: the built-in ones and the tables `[extractors.NAME]` of a user's `models.toml`."""

from functools import partial
from typing import ClassVar

from cotrail.core.ports.extractor import EXTRACTOR, Extractor
from cotrail.core.ports.language_model import Profile
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, ScriptTable
from cotrail.engines.extraction.scripted import ScriptedExtractor
from cotrail.engines.model_folders import hugging_face_folder
from cotrail.engines.optional_packages import Library


class Transformers(FolderTable, frozen=True, tag="transformers"):
    """A reader that transformers saved."""

    library: ClassVar[Library] = ("transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Extractor:
        """See `FolderTable`."""
        from cotrail.engines.extraction.transformers import TransformersExtractor

        return TransformersExtractor(self.path, identity, profile)


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted extractor; path: its script."""

    scripted = ScriptedExtractor


EXTRACTORS: EngineCatalogue[Extractor] = EngineCatalogue(
    kind=EXTRACTOR.kind,
    tables=Transformers | Scripted,
    built_in={
        "dpr-reader-multiset": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-multiset-base"), Transformers),
        "dpr-reader-nq": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-single-nq-base"), Transformers),
        "roberta-base-squad2": BuiltIn(partial(hugging_face_folder, "deepset/roberta-base-squad2"), Transformers),
    },
)
"""None is a default: what a confidence means, and with it a system's threshold, is the model's."""
