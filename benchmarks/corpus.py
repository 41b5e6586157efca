"""Building, indexing and searching a corpus as large as HotpotQA's: time, size, memory, queries a second.

`python -m benchmarks.corpus [--paragraphs N] [--output FILE]` makes a dump of made-up abstracts (`benchmarks.zipfian`)
in the form of HotpotQA's, does what `cotrail data build` and `cotrail index` do, and searches. Each stage is a process
of its own, whose highest resident memory is taken from the kernel. Everything is written to a temporary folder, about
6 GB, that is removed afterwards; TMPDIR says where.
"""

import bz2
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.zipfian import abstracts, queries
from cotrail.corpora.building import build_corpus
from cotrail.retrieval.corpus import read_corpus
from cotrail.retrieval.tantivy import TantivyRetriever, build_index

SEED = 1
HOTPOTQA = 5_233_329
"""How many paragraphs HotpotQA's corpus has."""

ABSTRACTS_PER_FILE = 340
"""About what HotpotQA's 15,517 files have."""

QUERIES = 2_000
RETRIEVED = 15
"""How many paragraphs a query asks for: the most that the paper collects."""

WARM_UP = 100
SEARCH_SECONDS = 30.0

Report = Callable[[int], None]
"""Tells how many paragraphs or queries are done."""

Stage = Callable[..., dict[str, Any]]
"""Work that is measured: takes where things are and a report, and says what it found."""


def main(
    paragraphs: Annotated[int, typer.Option(min=1000, help="How many paragraphs the corpus has.")] = HOTPOTQA,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Builds, indexes and searches a made-up corpus, and prints what that took as JSON."""
    with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as name, _screen() as shown:
        folder = Path(name)
        (generated,) = _measured([(_generate, (folder, paragraphs))], shown("generating", paragraphs))
        (built,) = _measured([(_build, (folder,))], shown("building", paragraphs))
        (indexed,) = _measured([(_index, (folder,))], shown("indexing", paragraphs))
        asked = queries(QUERIES, SEED)
        others = asked[QUERIES // 2 :] + asked[: QUERIES // 2]
        alone = _measured([(_search, (folder, asked))], shown("searching, 1 process", QUERIES))
        both = _measured(
            [(_search, (folder, each)) for each in (asked, others)], shown("searching, 2 processes", QUERIES)
        )
    report = {
        "paragraphs": paragraphs,
        "generated": generated,
        "built": built,
        "indexed": indexed,
        "searched": {"1 process": _together(alone), "2 processes": _together(both)},
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "versions": {package: version(package) for package in ("cotrail", "tantivy", "msgspec", "numpy")},
    }
    text = json.dumps(report, indent=2)
    if output is not None:
        output.write_text(text + "\n")
    print(text)


def _generate(folder: Path, paragraphs: int, report: Report) -> dict[str, Any]:
    """Writes the dump."""
    source, done = abstracts(paragraphs, SEED), 0
    for number in count():
        lines = [
            msgspec.json.encode({"title": each.title, "text": each.sentences})
            for each in islice(source, ABSTRACTS_PER_FILE)
        ]
        if not lines:
            return {"files": number, "bytes": _bytes(folder / "dump")}
        path = folder / "dump" / f"{number // 100:03}" / f"wiki_{number % 100:02}.bz2"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bz2.compress(b"\n".join(lines)))
        done += len(lines)
        report(done)
    raise AssertionError


def _build(folder: Path, report: Report) -> dict[str, Any]:
    corpus = folder / "corpus.jsonl"
    built = build_corpus("hotpotqa", [folder / "dump"], corpus, progress=lambda progress: report(progress.paragraphs))
    return {"paragraphs": built.paragraphs, "duplicates": built.duplicates, "bytes": corpus.stat().st_size}


def _index(folder: Path, report: Report) -> dict[str, Any]:
    manifest = build_index(read_corpus([folder / "corpus.jsonl"]), folder / "index", report)
    return {"paragraphs": manifest.paragraphs, "bytes": _bytes(folder / "index")}


def _search(folder: Path, asked: list[str], report: Report) -> dict[str, Any]:
    """Searches for a while with one thread, each query again when all were asked."""
    retriever = TantivyRetriever(folder / "index")
    for query in asked[:WARM_UP]:
        retriever.search(query, RETRIEVED)
    times: list[float] = []
    while sum(times) < SEARCH_SECONDS:
        started = time.perf_counter()
        retriever.search(asked[len(times) % len(asked)], RETRIEVED)
        times.append(time.perf_counter() - started)
        if len(times) % WARM_UP == 0:
            report(min(len(times), QUERIES))
    times.sort()
    return {
        "load_average": round(os.getloadavg()[0], 1),
        "queries": len(times),
        "searching": sum(times),
        "median_ms": round(1000 * times[len(times) // 2], 2),
        "p95_ms": round(1000 * times[len(times) * 95 // 100], 2),
        "words_a_query": round(sum(len(query.split()) for query in asked) / len(asked), 1),
        "own_mib": _memory("RssAnon"),
    }


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What one process found, or two at the same time: queries a second are added up."""
    rates = [part["queries"] / part["searching"] for part in parts]
    return {
        "queries_per_second": round(sum(rates), 1),
        **{
            key: max(part[key] for part in parts)
            for key in ("median_ms", "p95_ms", "words_a_query", "own_mib", "peak_mib", "load_average")
        },
    }


def _measured(stages: list[tuple[Stage, tuple[Any, ...]]], report: Report) -> list[dict[str, Any]]:
    """Does the work, each piece in a process of its own, all at once; adds seconds and the highest memory."""
    started = [_begun(stage, arguments) for stage, arguments in stages]
    results = [_received(receiver, report) for _, receiver in started]
    for process, _ in started:
        process.join()
    return results


def _begun(stage: Stage, arguments: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, stage, arguments))
    process.start()
    sender.close()
    return process, receiver


def _work(sender: Connection, stage: Stage, arguments: tuple[Any, ...]) -> None:
    started = time.perf_counter()
    found = stage(*arguments, report=sender.send)
    took = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time()}
    sender.send({**found, **{name: round(value, 1) for name, value in took.items()}, "peak_mib": _memory("VmHWM")})


def _received(receiver: Connection, report: Report) -> dict[str, Any]:
    while not isinstance(message := receiver.recv(), dict):
        report(message)
    return message


def _memory(field: str) -> int:
    """A field of the kernel's account of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(kibibytes) // 1024


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def _screen() -> Iterator[Callable[[str, int], Report]]:
    """Shows what is being done and how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:

        def shown(description: str, total: int) -> Report:
            task = bar.add_task(description, total=total)
            return lambda done: bar.update(task, completed=done)

        yield shown


if __name__ == "__main__":
    typer.run(main)
