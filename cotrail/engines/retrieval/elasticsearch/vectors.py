"""Embeddings on a search server: the fields that hold them, and exact searches for the nearest.

Elasticsearch compares with a flat index (`dense_vector`), OpenSearch by the script of its k-NN plugin (`knn_vector`).
Both compute in 32 bits, so the best are compared once more by the embeddings in the documents, as in a folder.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector, cosine
from cotrail.engines.retrieval.elasticsearch.building import Documents, document_of, filed
from cotrail.engines.retrieval.elasticsearch.retriever import MOST_HITS, ElasticsearchRetriever
from cotrail.engines.retrieval.embeddings import (
    MARGIN,
    DenseSettings,
    HybridRetriever,
    KeptEmbeddings,
    is_whole,
    with_model,
)
from cotrail.engines.retrieval.engine import ServerEngine, read_settings
from cotrail.errors import CorpusError, InputError

VECTOR, EMBEDDING = "vector", "embedding"
"""The field that the server compares, and the one that documents keep: the same numbers, as base64."""

MOST_NUMBERS = 4096
"""The longest embedding that Elasticsearch takes."""


@contextmanager
def embedding(engine: ServerEngine, values: Mapping[str, Any], models: Path, folder: Path) -> Iterator[Documents]:
    """How an index of this server with embeddings is built; values: its settings; folder: of kept embeddings.

    Raises InputError for a model whose embeddings are too long, and UnknownNameError.
    """
    settings = read_settings(engine.name, DenseSettings, values)
    with closing(KeptEmbeddings(folder, models, settings.model)) as kept:
        length = len(kept.of(["length"])[0]) // 4
        if length > MOST_NUMBERS:
            raise InputError(
                f"{settings.model} makes embeddings of {length:,} numbers, and at most {MOST_NUMBERS:,} fit"
            )
        engine = filed(engine, settings.fields or {})
        mappings = engine.mappings | {"properties": engine.mappings["properties"] | _fields(engine.name, length)}
        with_fields = msgspec.structs.replace(
            engine,
            ranking=with_model(engine.ranking, models, settings),
            # What is compared is of no use in a document, where it would take several times its room.
            mappings=mappings | {"_source": {"excludes": [VECTOR]}},
        )
        yield Documents(engine=with_fields, settings=msgspec.to_builtins(settings), of=partial(_documents, kept))


def _documents(kept: KeptEmbeddings, paragraphs: Iterable[Paragraph]) -> Iterator[tuple[Paragraph, bytes]]:
    for paragraph, numbers in kept.with_each(paragraphs):
        vector = np.frombuffer(numbers, "<f4").tolist()
        fields = {VECTOR: vector, EMBEDDING: base64.b64encode(numbers).decode()}
        yield paragraph, msgspec.json.encode(document_of(paragraph) | fields)


def _fields(server: str, length: int) -> dict[str, Any]:
    field = (
        {"type": "knn_vector", "dimension": length}
        if server == "opensearch"
        else {"type": "dense_vector", "dims": length, "similarity": "dot_product", "index_options": {"type": "flat"}}
    )
    return {VECTOR: field, EMBEDDING: {"type": "binary"}}


def hybrid(words: ElasticsearchRetriever, models: Path) -> HybridRetriever:
    """The index searched by words and by embeddings."""
    return HybridRetriever(words, ServerVectors(words), words.manifest, models)


class ServerVectors:
    """The embeddings of an index on a server; see `VectorIndex`. words: the same index, searched by words."""

    def __init__(self, words: ElasticsearchRetriever) -> None:
        self._words = words

    def nearest(
        self, vector: Vector, count: int, titles: tuple[str, ...], filter_: str
    ) -> list[tuple[float, Paragraph]]:
        among = self._among(titles, filter_)
        limit = min(count + MARGIN, MOST_HITS)
        while True:
            found = self._words.documents(self._body(vector.tolist(), limit, among))
            scores = [cosine(vector, _numbers(source)) for _, source in found]
            if len(found) < limit or limit == MOST_HITS or is_whole(scores, count):
                break
            limit = min(4 * limit, MOST_HITS)
        paragraphs = (paragraph for paragraph, _ in found)
        return sorted(zip(scores, paragraphs, strict=True), key=lambda each: (-each[0], each[1].id))[:count]

    def _among(self, titles: tuple[str, ...], filter_: str) -> dict[str, Any]:
        filters = [self._words.titles_filter(titles)] if titles else []
        filters += [self._words.filtered(filter_)] if filter_ else []
        return {"bool": {"filter": filters}} if filters else {"match_all": {}}

    def _body(self, query: list[float], limit: int, among: dict[str, Any]) -> dict[str, Any]:
        if self._words.manifest.engine == "opensearch":
            script = {"field": VECTOR, "query_value": query, "space_type": "cosinesimil"}
            compared = {"lang": "knn", "source": "knn_score", "params": script}
            return {"size": limit, "query": {"script_score": {"query": among, "script": compared}}}
        nearest = {"field": VECTOR, "query_vector": query, "k": limit, "num_candidates": limit, "filter": among}
        return {"size": limit, "knn": nearest}


def _numbers(source: dict[str, Any]) -> Vector:
    try:
        return np.frombuffer(base64.b64decode(source[EMBEDDING], validate=True), "<f4")
    except (KeyError, ValueError, TypeError) as error:
        raise CorpusError("a document of the index has no embedding; index the corpus again") from error
