"""Bundles that are made to take all memory or time: `cotrail audit verify` refuses them, or says what is wrong."""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from cotrail.audit.bundles import bundled
from cotrail.audit.records import Record, end_of, write_record
from cotrail.models.records.trail import read_trail
from tests.integration.forging import resealed
from tests.integration.recorded import OPEN, PLAIN

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEMORY = 3 * 2**29
"""How much address space a process has that verifies, in bytes."""

SECONDS = 300

MEBI = 2**20
BLOCK = b"x" * MEBI

Lines = Iterable[bytes]


@pytest.fixture(scope="module")
def records(store: Engine) -> dict[str, list[Record]]:
    """A bundle's records but the last, by run."""
    with store.connect() as connection:
        return {run: list(bundled(read_trail(connection, run), run, "0")) for run in (PLAIN, OPEN)}


def changed(records: Iterable[Record], table: str, of: Callable[[Record], bool] = lambda _: True, **row: Any) -> Lines:
    """The lines of a bundle in which the first such row holds other values."""
    every = list(records)
    first = next(record for record in every if record.table == table and of(record))
    return [write_record(Record(table, record.row | row) if record is first else record) for record in every]


def open_search(record: Record) -> bool:
    return record.row["kind"] == "retrieve" and record.row["digest"] is None


def ended_search(record: Record) -> bool:
    return record.row["kind"] == "retrieve" and record.row["state"] == "finished"


def many(records: Iterable[Record], table: str, rows: Iterator[dict[str, str | None]]) -> Lines:
    """The lines of a bundle with many more rows behind the first of a table."""
    for record in records:
        yield write_record(record)
        if record.table == table:
            for row in rows:
                yield write_record(Record(table, record.row | row))


def endless_line(records: Iterable[Record]) -> Lines:
    yield from map(write_record, list(records)[:3])
    yield b'{"table":"paragraphs","row":{"digest":"'
    yield from (BLOCK for _ in range(1000))


def paragraphs(count: int) -> Iterator[dict[str, str | None]]:
    for number in range(count):
        title, text = str(number), "x" * MEBI
        digest = hashlib.sha256(f"{title}\0{text}".encode()).hexdigest()
        yield {"digest": digest, "title": title, "text": text}


def huge_prompts(records: list[Record]) -> Lines:
    """A step whose prompt would hold one paragraph ten thousand times."""
    [paragraph] = paragraphs(1)
    [step] = [each for each in records if each.table == "steps" and each.row["digest"] is None][:1]
    for record in records:
        if record.table == "questions" and record.row["id"] == step.row["question_id"]:
            yield write_record(Record("paragraphs", paragraph))
        if record is step:
            shots = next(each.row["digest"] for each in records if each.table == "demonstrations")
            request = {
                "demonstrations": shots,
                "paragraphs": [paragraph["digest"]] * 10_000,
                "question": "?",
                "sentences": [],
                "max_paragraph_words": 350,
                "drop": "last",
                "max_tokens": 1,
                "until": "line",
            }
            yield write_record(Record("steps", record.row | {"kind": "read", "request": json.dumps(request)}))
        else:
            yield write_record(record)


def forged_hits(records: Iterable[Record]) -> Lines:
    """A search that says that it found very much, sealed anew."""
    lines = list(changed(records, "steps", ended_search, result='{"hits":999999999999,"digest":""}'))
    return resealed([*lines, b""])[:-1]


def nested(records: Iterable[Record]) -> Lines:
    yield from map(write_record, records)
    yield b'{"x":' + b"[" * 1_000_000 + b"\n"


def wrong_steps(records: Iterable[Record]) -> Lines:
    return many(records, "steps", ({"id": str(n), "sequence": str(n)} for n in range(1000, 20_000)))


BOMBS: dict[str, tuple[str, Callable[[list[Record]], Lines]]] = {
    "a size": (PLAIN, lambda records: changed(records, "runs", size="999999999999")),
    "a position": (PLAIN, lambda records: changed(records, "questions", position="999999999999")),
    "an epoch": (OPEN, lambda records: changed(records, "steps", open_search, epoch="999999999999")),
    "a number of digits": (PLAIN, lambda records: changed(records, "runs", seed="9" * 5000)),
    "hits": (PLAIN, forged_hits),
    "a line": (PLAIN, endless_line),
    "a nest of records": (PLAIN, nested),
    "a nest of a request": (OPEN, lambda records: changed(records, "steps", open_search, request="[" * 1_000_000)),
    "a nest of a result": (PLAIN, lambda records: changed(records, "steps", ended_search, result="[" * 1_000_000)),
    "a nest of demonstrations": (PLAIN, lambda records: changed(records, "demonstrations", body='{"a":' * 1_000_000)),
    "paragraphs": (PLAIN, lambda records: many(records, "paragraphs", paragraphs(300))),
    "a prompt": (OPEN, huge_prompts),
    "rows of a question": (
        PLAIN,
        lambda records: many(records, "attempts", ({"epoch": str(n)} for n in range(2, 400_000))),
    ),
    "steps to explain": (PLAIN, wrong_steps),
    "questions to explain": (
        PLAIN,
        lambda records: many(records, "questions", ({"key": str(n), "position": str(n)} for n in range(6, 20_000))),
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_made_to_take_all_memory_or_time_gets_a_verdict(
    records: dict[str, list[Record]], tmp_path: Path, bomb: str
) -> None:
    run, made = BOMBS[bomb]
    path = tmp_path / "bomb"
    hashed, count = hashlib.sha256(), 0
    with zstd.open(path, "wb", level=1) as file:
        for line in made(records[run]):
            hashed.update(line)
            count += 1
            file.write(line)
        file.write(write_record(end_of(count, hashed.hexdigest())))
    done = subprocess.run(
        [sys.executable, "-m", "cotrail.cli.main", "audit", "verify", str(path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    # An epoch without an attempt is a claim that was given back.
    assert done.returncode == (5 if bomb == "an epoch" else 1), done.stderr[-500:]
    assert "Traceback" not in done.stderr
    assert "finding" in done.stdout or "SEALED" in done.stdout or done.stderr.startswith("cotrail: ")
