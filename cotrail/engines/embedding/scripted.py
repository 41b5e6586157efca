"""Scripted embedder: returns the similarities of a script."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.embedder import Comparison
from cotrail.core.results import Embedded
from cotrail.engines.script_files import ScriptedEngine

Similarity = Annotated[float, Meta(ge=-1, le=1)]


class EmbeddingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    similarities: by a sentence, and then by a paragraph's title or text, or by another sentence, in either order.
    default: for pairs that the script doesn't contain; a text's similarity to itself is 1.
    """

    similarities: dict[str, dict[str, Similarity]] = {}
    default: Similarity = 0.0


class ScriptedEmbedder(ScriptedEngine[EmbeddingScript]):
    """Compares texts by a script."""

    form = EmbeddingScript

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """See `Embedder`."""
        rows = [tuple(self._row(sentence, each) for sentence in each.sentences) for each in comparisons]
        return [Embedded(similarities=each) for each in rows]

    def _row(self, sentence: str, comparison: Comparison) -> tuple[float, ...]:
        if comparison.paragraphs:
            return tuple(self._to_paragraph(sentence, each) for each in comparison.paragraphs)
        return tuple(self._to_sentence(sentence, each) for each in comparison.sentences)

    def _to_paragraph(self, sentence: str, paragraph: Paragraph) -> float:
        similarities = self._script.similarities.get(sentence, {})
        return similarities.get(paragraph.title, similarities.get(paragraph.text, self._script.default))

    def _to_sentence(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        similarities = self._script.similarities
        similarity = similarities.get(one, {}).get(other, similarities.get(other, {}).get(one))
        return self._script.default if similarity is None else similarity
