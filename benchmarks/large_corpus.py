"""Building, indexing and searching a corpus of HotpotQA's size: time, disk, memory, queries per second.

`python -m benchmarks.large_corpus [--paragraphs N] [--output FILE]` generates a dump of synthetic abstracts
(`benchmarks.zipfian`) in HotpotQA's format, does what `cotrail data build` and `cotrail index` do, and searches. Each
stage is a process of its own, so that the kernel reports its peak memory. About 6 GB are written to a temporary folder
below TMPDIR and removed afterwards.
"""

import bz2
import json
import tempfile
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from benchmarks.machine import describe, versions
from benchmarks.searching import RETRIEVED, searched, together, warm_up
from benchmarks.stages import ReportProgress, bytes_of, measured, screen
from benchmarks.zipfian import abstracts, queries
from cotrail.core.ports.retriever import SearchRequest
from cotrail.data.corpora.building import build_corpus
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import build_index, open_index

SEED = 1
HOTPOTQA = 5_233_329
"""Number of paragraphs in HotpotQA's corpus."""

ABSTRACTS_PER_FILE = 340
"""About as in HotpotQA's 15,517 files."""

QUERIES = 2_000
SEARCH_SECONDS = 30.0


def main(
    paragraphs: Annotated[int, typer.Option(min=1000, help="How many paragraphs the corpus has.")] = HOTPOTQA,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Build, index and search a synthetic corpus, and print the cost of each stage as JSON."""
    with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as name, screen() as shown:
        folder = Path(name)
        (generated,) = measured([(_generate, (folder, paragraphs))], shown("generating", paragraphs))
        (built,) = measured([(_build, (folder,))], shown("building", paragraphs))
        (indexed,) = measured([(_index, (folder,))], shown("indexing", paragraphs))
        asked = queries(QUERIES, SEED)
        others = asked[QUERIES // 2 :] + asked[: QUERIES // 2]
        alone = measured([(_search, (folder, asked))], shown("searching, 1 process", QUERIES))
        both = measured(
            [(_search, (folder, each)) for each in (asked, others)], shown("searching, 2 processes", QUERIES)
        )
    report = {
        "paragraphs": paragraphs,
        "generated": generated,
        "built": built,
        "indexed": indexed,
        "searched": {"1 process": together(alone), "2 processes": together(both)},
        "machine": describe(),
        "versions": versions("cotrail", "tantivy", "msgspec", "numpy"),
    }
    text = json.dumps(report, indent=2)
    if output is not None:
        output.write_text(text + "\n")
    print(text)


def _generate(folder: Path, paragraphs: int, report: ReportProgress) -> dict[str, Any]:
    """Write the dump."""
    source, done = abstracts(paragraphs, SEED), 0
    for number in count():
        lines = [
            msgspec.json.encode({"title": each.title, "text": each.sentences})
            for each in islice(source, ABSTRACTS_PER_FILE)
        ]
        if not lines:
            return {"files": number, "bytes": bytes_of(folder / "dump")}
        path = folder / "dump" / f"{number // 100:03}" / f"wiki_{number % 100:02}.bz2"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bz2.compress(b"\n".join(lines)))
        done += len(lines)
        report(done)
    raise AssertionError


def _build(folder: Path, report: ReportProgress) -> dict[str, Any]:
    corpus = folder / "corpus.jsonl"
    built = build_corpus("hotpotqa", [folder / "dump"], corpus, progress=lambda progress: report(progress.paragraphs))
    return {"paragraphs": built.paragraphs, "duplicates": built.duplicates, "bytes": corpus.stat().st_size}


def _index(folder: Path, report: ReportProgress) -> dict[str, Any]:
    manifest = build_index(read_corpus([folder / "corpus.jsonl"]), folder / "index", report)
    return {"paragraphs": manifest.paragraphs, "bytes": bytes_of(folder / "index")}


def _search(folder: Path, asked: list[str], report: ReportProgress) -> dict[str, Any]:
    retriever = open_index(folder / "index")

    def search(query: str) -> object:
        return retriever.search(SearchRequest(query=query, count=RETRIEVED))

    warm_up(search, asked, SEARCH_SECONDS)
    return searched(search, asked, SEARCH_SECONDS, report)


if __name__ == "__main__":
    typer.run(main)
