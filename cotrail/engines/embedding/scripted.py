"""Scripted embedder: returns the similarities of a script."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.actions.embed import Embed
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Embedded
from cotrail.engines.script_files import read_script, script_identity

Similarity = Annotated[float, Meta(ge=-1, le=1)]


class EmbeddingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    similarities: by a sentence, and then by a paragraph's title or text, or by another sentence, in either order.
    default: for pairs that the script doesn't contain; a text's similarity to itself is 1.
    """

    similarities: dict[str, dict[str, Similarity]] = {}
    default: Similarity = 0.0


class ScriptedEmbedder:
    """Compares texts by a script.

    source: a script, its file, or a mapping of the same content; name: the identity's name.
    """

    def __init__(self, source: EmbeddingScript | Path | Mapping[str, object], name: str = "scripted") -> None:
        self._script = read_script(source, EmbeddingScript)
        self._identity = script_identity(self._script, name)

    @property
    def identity(self) -> str:
        """See `Embedder`."""
        return self._identity

    def compare(self, actions: Sequence[Embed]) -> list[Embedded]:
        """See `Embedder`."""
        rows = [tuple(self._row(sentence, action) for sentence in action.sentences) for action in actions]
        return [Embedded(similarities=each) for each in rows]

    def _row(self, sentence: str, action: Embed) -> tuple[float, ...]:
        if action.paragraphs:
            return tuple(self._to_paragraph(sentence, each) for each in action.paragraphs)
        return tuple(self._to_sentence(sentence, each) for each in action.sentences)

    def _to_paragraph(self, sentence: str, paragraph: Paragraph) -> float:
        known = self._script.similarities.get(sentence, {})
        return known.get(paragraph.title, known.get(paragraph.text, self._script.default))

    def _to_sentence(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        similarities = self._script.similarities
        known = similarities.get(one, {}).get(other, similarities.get(other, {}).get(one))
        return self._script.default if known is None else known
