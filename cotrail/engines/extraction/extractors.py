"""Catalogue of extractors: the built-in ones and the tables `[extractors.NAME]` of a user's `models.toml`."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from msgspec import Struct

from cotrail.common.optional_packages import Library
from cotrail.core.ports.encoders import EXTRACTOR, Extraction, Extractor
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Extracted
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, ScriptTable
from cotrail.engines.model_folders import hugging_face_folder
from cotrail.engines.script_files import ScriptedEngine
from cotrail.errors import StepError


class ScriptedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer, which is a piece of the paragraph's text, and the confidence in it."""

    text: str = ""
    confidence: float = 0.0


class ExtractionScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    answers: by a question, and then by a paragraph's title or text.
    default: for questions and paragraphs that the script doesn't contain.
    """

    answers: dict[str, dict[str, ScriptedAnswer]] = {}
    default: ScriptedAnswer = ScriptedAnswer()

    def answer(self, extraction: Extraction) -> ScriptedAnswer:
        """The script's answer to a question in a paragraph."""
        answers = self.answers.get(extraction.question, {})
        return answers.get(extraction.paragraph.title, answers.get(extraction.paragraph.text, self.default))


class ScriptedExtractor(ScriptedEngine[ExtractionScript]):
    """Answers by a script."""

    form = ExtractionScript

    def extract(self, extractions: Sequence[Extraction]) -> list[Extracted]:
        """See `Extractor`; raises StepError where a script's answer isn't in the paragraph's text."""
        return [self._extracted(each) for each in extractions]

    def _extracted(self, extraction: Extraction) -> Extracted:
        answer = self._script.answer(extraction)
        start = extraction.paragraph.text.find(answer.text)
        if start < 0:
            raise StepError(f"the script's answer {answer.text!r} isn't in the text of {extraction.paragraph.title!r}")
        return Extracted(text=answer.text, confidence=answer.confidence, start=start, end=start + len(answer.text))


class Transformers(FolderTable, frozen=True, tag="transformers"):
    """A reader that transformers saved."""

    library: ClassVar[Library] = ("transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Extractor:
        from cotrail.engines.extraction.transformers import TransformersExtractor

        return TransformersExtractor(self.path, identity, profile)


class ScriptedExtractorTable(ScriptTable, frozen=True, tag="scripted"):
    """A scripted extractor; path: its script."""

    scripted = ScriptedExtractor


EXTRACTORS: EngineCatalogue[Extractor] = EngineCatalogue(
    kind=EXTRACTOR.kind,
    tables=Transformers | ScriptedExtractorTable,
    built_in={
        "dpr-reader-multiset": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-multiset-base"), Transformers),
        "dpr-reader-nq": BuiltIn(partial(hugging_face_folder, "facebook/dpr-reader-single-nq-base"), Transformers),
        "roberta-base-squad2": BuiltIn(partial(hugging_face_folder, "deepset/roberta-base-squad2"), Transformers),
    },
)
"""None is a default: what a confidence means, and with it a system's threshold, is the model's."""
