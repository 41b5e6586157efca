"""Embedding and rerank servers: answers by a measure that tests can compute themselves, and llama.cpp's own server."""

import base64
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from cotrail.engines.engine_catalogue import EngineCatalogue, NamedEngine, OpenedT
from cotrail.errors import UnavailableError
from tests.integration.served import KEY

DIMENSIONS = 32

Make = Callable[..., Any]


def found_role(
    catalogue: EngineCatalogue[OpenedT], table: str, home: Path, url: str, **fields: object
) -> NamedEngine[OpenedT]:
    """The server of a file of models, in the role of the catalogue; fields are those of its table."""
    entry = {"engine": "server", "url": url, "model": "m", "timeout_seconds": 60.0} | fields
    (home / "models.toml").write_text(tomli_w.dumps({table: {"mine": entry}}))
    return catalogue.find(home / "models.toml", "mine")


@contextmanager
def role_opener(catalogue: EngineCatalogue[Any], table: str, home: Path, url: str) -> Iterator[Make]:
    """Opens the server in the role of the catalogue, at another address where one is given, and ends all at the end."""
    made: list[Any] = []

    def opener(at: str = "", limiter: Any = None, **fields: object) -> Any:
        further = {} if limiter is None else {"limiter": limiter}
        made.append(found_role(catalogue, table, home, at or url, **fields).open("fast", **further))
        return made[-1]

    yield opener
    for each in made:
        each.interrupt()


def embedding_of(text: str) -> list[float]:
    """How often each letter occurs in a text; never zeros."""
    numbers = [1.0] * DIMENSIONS
    for character in text.lower():
        numbers[ord(character) % DIMENSIONS] += 3.0
    return numbers


def similarity_of(one: str, other: str) -> float:
    a, b = embedding_of(one), embedding_of(other)
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def openai_embeddings(body: dict[str, Any]) -> object:
    """OpenAI's answer, whose embeddings come in another order than the texts."""
    made = [{"object": "embedding", "index": n, "embedding": _packed(body, each)} for n, each in _enumerated(body)]
    return {"object": "list", "model": body["model"], "data": made[::-1], "usage": _usage(body["input"])}


def tei_embeddings(body: dict[str, Any]) -> object:
    return [embedding_of(text) for text in body["inputs"]]


def score_of(text: str, other: str) -> float:
    """How many words two texts share, less those that only the other has."""
    one, two = set(text.lower().split()), set(other.lower().split())
    return len(one & two) - len(two - one) / 7


def reranked(body: dict[str, Any]) -> object:
    """The answer of vLLM, Jina and Cohere: the best first, and as many as were asked for."""
    scored = sorted(enumerate(score_of(body["query"], each) for each in body["documents"]), key=lambda each: -each[1])
    results = [{"index": n, "relevance_score": score, "document": {}} for n, score in scored[: body.get("top_n")]]
    return {"id": "1", "model": body["model"], "results": results, "usage": _usage(body["documents"])}


def tei_reranked(body: dict[str, Any]) -> object:
    scale = 1 if body["raw_scores"] else 0.5
    scored = sorted(enumerate(score_of(body["query"], each) for each in body["texts"]), key=lambda each: -each[1])
    return [{"index": n, "score": score * scale} for n, score in scored]


def packed(numbers: Sequence[float]) -> str:
    """Numbers as OpenAI packs them."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def _packed(body: dict[str, Any], text: str) -> list[float] | str:
    numbers = embedding_of(text)[: body.get("dimensions")]
    return packed(numbers) if body.get("encoding_format") == "base64" else numbers


def _enumerated(body: dict[str, Any]) -> list[tuple[int, str]]:
    return list(enumerate(body["input"]))


def _usage(texts: Sequence[str]) -> dict[str, int]:
    return {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}


@contextmanager
def llama_cpp(pooling: str) -> Iterator[str]:
    """The address of llama.cpp's own server with SmolLM2, which takes the key KEY; pooling: MEAN embeds, RANK rates.

    Its scores mean nothing, as SmolLM2 is no reranker.
    """
    xllamacpp = pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")
    from cotrail.engines.language_models.catalogue import smollm2_path

    params = xllamacpp.CommonParams()
    try:
        params.model.path = str(smollm2_path())
    except UnavailableError as error:
        pytest.skip(str(error))
    params.n_parallel, params.n_ctx, params.verbosity, params.api_keys = 1, 512, -1, [KEY]
    params.embedding = True
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling}")
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # several wait for each other on busy cores
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server
