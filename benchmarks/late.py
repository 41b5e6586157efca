"""Late interaction in a folder: what one search costs, and how large an index is, with made-up embeddings.

`python -m benchmarks.late [--sizes 10000,100000] [--output FILE]` writes indexes of paragraphs with 60 to 180 tokens of
128 numbers each, and asks for ten paragraphs by queries of 32 tokens, one after the other, after one that isn't timed.
What a model takes to embed isn't in it. The scores of the last query are compared with those of every paragraph.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.machine import command, describe, publish, versions
from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import max_sim
from cotrail.engines.retrieval import late
from cotrail.engines.retrieval.dense import write
from cotrail.engines.retrieval.embeddings import LateSettings
from cotrail.engines.retrieval.manifest import FolderManifest
from cotrail.engines.retrieval.tantivy import TANTIVY, Bm25Settings, TantivyRetriever

NUMBERS, QUERY, TOKENS = 128, 32, (60, 180)
"""Numbers of a token; tokens of a query; the fewest and the most of a paragraph. As ColBERTv2 has the first two."""

COUNT, QUERIES = 10, 15
MEASURED = ("cotrail", "numpy", "tantivy")


def main(
    sizes: Annotated[str, typer.Option(help="How many paragraphs, separated by commas.")] = "10000,100000",
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each size, and print what it costs."""
    rows = [_measured(int(size)) for size in sizes.split(",")]
    report: dict[str, Any] = {"command": command("benchmarks.late"), "numbers": NUMBERS, "query_tokens": QUERY}
    report |= {
        "measured": rows,
        "load_average": os.getloadavg(),
        "machine": describe(),
        "versions": versions(*MEASURED),
    }
    publish(report, output)


def _measured(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, late.placed(folder, _embedded(size)), LateSettings(model="made-up"))
        ranking = TANTIVY.ranking(Bm25Settings())
        about = FolderManifest(
            revision="",
            paragraphs=size,
            created_by={},
            folder="",
            analyzer=ranking.analyzer,
            k1=ranking.k1,
            b=ranking.b,
        )
        index = late.MappedTokens(folder, about, TantivyRetriever(folder / "bm25", about))
        queries = [_unit(np.random.default_rng(10**9 + number), QUERY) for number in range(QUERIES + 1)]
        seconds, computed = [], []
        for query in queries:
            started, used = time.perf_counter(), time.process_time()
            found = index.nearest(query, COUNT, (), "")
            seconds.append(time.perf_counter() - started)
            computed.append(time.process_time() - used)
        every = ((-max_sim(queries[-1], _tokens(row)), f"{row:09}") for row in range(size))
        assert [(-score, paragraph.id) for score, paragraph in found] == sorted(every)[:COUNT]
        vectors = (folder / "vectors.f32").stat().st_size
        return {
            "paragraphs": size,
            "tokens": vectors // (4 * NUMBERS),
            "embeddings_mib": round(vectors / 2**20),
            "median_seconds": round(float(np.median(seconds[1:])), 3),
            "slowest_seconds": round(max(seconds[1:]), 3),
            "median_cpu_seconds": round(float(np.median(computed[1:])), 3),
        }


def _embedded(size: int) -> Iterator[tuple[Paragraph, bytes]]:
    for row in range(size):
        yield Paragraph(id=f"{row:09}", title="", text=f"paragraph {row}"), _tokens(row).tobytes()


def _tokens(row: int) -> NDArray[Any]:
    """The embeddings of a paragraph's tokens, which are the same each time."""
    chance = np.random.default_rng(row)
    return _unit(chance, int(chance.integers(*TOKENS)))


def _unit(chance: np.random.Generator, tokens: int) -> NDArray[Any]:
    drawn = chance.standard_normal((tokens, NUMBERS), np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


if __name__ == "__main__":
    typer.run(main)
