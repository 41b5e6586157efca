"""Approximate search among embeddings: what an index costs, what it finds, and how fast, next to exact search.

`python -m benchmarks.approximate [--sizes 20000,200000] [--output FILE]` makes embeddings in clusters, as of texts,
builds the lists for a recall of 0.95, and asks for ten neighbours of further points: exactly (faiss, flat, mapped),
and by the lists. Recall is compared with exact search over these, which took no part in the build. One thread.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import faiss
import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.machine import command, describe, publish, versions
from cotrail.engines.retrieval import dense

NUMBERS, CLUSTER, SPREAD = 384, 40, 0.8
"""Numbers of an embedding; how many are around one centre; how far they are from it, of the centre's own length."""

RECALL, NEAREST, QUERIES = 0.95, 10, 200
MEASURED = ("cotrail", "faiss-cpu", "numpy")


def main(
    sizes: Annotated[str, typer.Option(help="How many embeddings, separated by commas.")] = "20000,200000",
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each size, and print what it costs and finds."""
    rows = [_measured(int(size)) for size in sizes.split(",")]
    report: dict[str, Any] = {"command": command("benchmarks.approximate"), "numbers": NUMBERS, "asked_recall": RECALL}
    report |= {"measured": rows, "machine": describe(), "versions": versions(*MEASURED)}
    publish(report, output)


def _measured(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        vectors = _written(folder / "vectors.f32", size)
        started = time.perf_counter()
        about = dense.build_lists(folder, vectors, _embeddings(QUERIES, size, seed=8), RECALL)
        seconds = time.perf_counter() - started
        lists = dense.Lists(folder, about, size)
        queries = _embeddings(QUERIES, size, seed=9)
        exact = _rate(lambda query: _exactly(vectors, query), queries)
        near = _rate(lambda query: _among(vectors, query, lists.candidates(query, NEAREST)), queries)
        found = [len({*near[1][n]} & {*exact[1][n]}) / NEAREST for n in range(QUERIES)]
        return {
            "embeddings": size,
            "lists": about.lists,
            "read": about.read,
            "stated_recall": about.recall,
            "recall": round(float(np.mean(found)), 4),
            "build_seconds": round(seconds, 1),
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "embeddings_mib": round((folder / "vectors.f32").stat().st_size / 2**20),
            "lists_mib": round((folder / dense.FILE).stat().st_size / 2**20),
            "exact_a_second": round(exact[0], 1),
            "approximate_a_second": round(near[0], 1),
        }


def _written(file: Path, size: int) -> NDArray[Any]:
    """Embeddings in a file that is mapped, written in pieces."""
    with file.open("wb") as out:
        for first in range(0, size, 100_000):
            out.write(_embeddings(min(100_000, size - first), size, seed=first).tobytes())
    return np.memmap(file, np.float32, "r").reshape(size, NUMBERS)


def _embeddings(count: int, size: int, seed: int) -> NDArray[Any]:
    """Points around centres, which are the same for each seed."""
    chance = np.random.default_rng(seed)
    which = chance.integers(0, max(1, size // CLUSTER), count)
    points = np.empty((count, NUMBERS), np.float32)
    for row, centre in enumerate(which):
        points[row] = np.random.default_rng(10**6 + int(centre)).standard_normal(NUMBERS, np.float32)
    points += SPREAD * chance.standard_normal((count, NUMBERS), np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points


def _exactly(vectors: NDArray[Any], query: NDArray[Any]) -> list[int]:
    faiss.omp_set_num_threads(1)
    _, rows = faiss.knn(query[None], vectors, NEAREST, metric=faiss.METRIC_INNER_PRODUCT)
    return [int(row) for row in rows[0]]


def _among(vectors: NDArray[Any], query: NDArray[Any], rows: list[int]) -> list[int]:
    scores = vectors[rows] @ query
    return [rows[place] for place in np.argsort(-scores)[:NEAREST]]


def _rate(find: Callable[[NDArray[Any]], list[int]], queries: NDArray[Any]) -> tuple[float, list[list[int]]]:
    started = time.perf_counter()
    found = [find(query) for query in queries]
    return len(queries) / (time.perf_counter() - started), found


if __name__ == "__main__":
    typer.run(main)
