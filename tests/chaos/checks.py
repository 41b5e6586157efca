"""Invariants at the end, whatever the faults. Each check returns what is wrong, in words."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from redis import Redis
from sqlalchemy import Connection, Engine, text

from tests.faults.inner.executions import Execution
from tests.faults.stacked import steps_of

COLUMNS = ("sequence", "kind", "fingerprint", "request", "result", "failure", "state", "sentence", "paragraphs")
"""The columns of `tests.faults.stacked.steps_of`, after the key of the question."""

SHOWN = 5
"""How many findings of one kind are shown."""

Steps = dict[str, list[tuple[Any, ...]]]
Wrong = list[str]


def by_question(steps: Iterable[Sequence[Any]]) -> Steps:
    """Steps by the keys of their questions."""
    found: Steps = defaultdict(list)
    for key, *step in steps:
        found[key].append(tuple(step))
    return dict(found)


def asked(key: str) -> str:
    """The sample's question of a key, without its round."""
    return key.rpartition("-")[0]


def every_question_finished(connection: Connection) -> Wrong:
    """No question is open, failed or blocked."""
    return _told(
        connection,
        """
        SELECT 'question ' || key || ' of run ' || run_id || ' is ' || status
            || coalesce(': ' || CAST(reason AS text), '')
        FROM questions WHERE status <> 'finished'
        """,
    )


def every_run_is_whole(connection: Connection, sizes: Collection[int]) -> Wrong:
    """Each run has all questions that it was submitted with, however its submission ended."""
    query = "SELECT run_id, count(*) FROM questions GROUP BY 1"
    return [f"run {run} has {n} questions" for run, n in connection.execute(text(query)) if n not in sizes]


def steps_as_undisturbed(engine: Engine, run: str, undisturbed: Steps) -> Wrong:
    """Each question has the steps of the same question in an undisturbed run."""
    return [
        f"run {run}, question {key}: {difference(undisturbed[f'{asked(key)}-0'], steps)}"
        for key, steps in by_question(steps_of(engine, run)).items()
        if steps != undisturbed[f"{asked(key)}-0"]
    ]


def difference(expected: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> str:
    """The first step that differs, and its column."""
    for should, is_ in zip(expected, found, strict=False):
        for column, wanted, got in zip(COLUMNS, should, is_, strict=True):
            if wanted != got:
                return f"step {is_[0]} ({is_[1]}) has the {column} {got!r:.300} instead of {wanted!r:.300}"
    return f"{len(found)} steps instead of {len(expected)}"


def each_step_in_effect_once(connection: Connection) -> Wrong:
    """Each step has exactly one attempt that is `finished`, and no step has two rows."""
    counting = """
        SELECT 'step ' || steps.id || ' (' || steps.kind || ') is ' || steps.state || ' with the attempts '
            || coalesce(string_agg(outcome, ', ' ORDER BY attempts.epoch), 'none')
        FROM steps LEFT JOIN attempts ON step_id = steps.id
        GROUP BY steps.id HAVING count(*) FILTER (WHERE outcome = 'finished') <> 1
    """
    doubled = """
        SELECT 'question ' || question_id || ' has step ' || sequence || ' more than once'
        FROM steps GROUP BY question_id, sequence HAVING count(*) > 1
    """
    return _told(connection, counting) + _told(connection, doubled)


def every_attempt_ended(connection: Connection) -> Wrong:
    """Each attempt has an outcome, however its worker died."""
    return _told(
        connection,
        "SELECT 'step ' || step_id || ' in epoch ' || epoch || ' has no outcome' FROM attempts WHERE outcome IS NULL",
    )


def everything_sealed(connection: Connection) -> Wrong:
    """Each step, question and run has ended and has its digest."""
    unsealed = "SELECT '{0} ' || id || ' has no digest' FROM {0}s WHERE digest IS NULL"
    return [line for table in ("step", "question", "run") for line in _told(connection, unsealed.format(table))]


def every_tree_has_all(connection: Connection) -> Wrong:
    """Each tree of Search-in-the-Chain has nodes that passed, were corrected, completed and skipped, and marks."""
    query = """
        SELECT 'question ' || key || ' of run ' || run_id || ' has no ' || part || ' in its tree'
        FROM questions JOIN runs ON runs.id = run_id, unnest(ARRAY[
            '{"nodes": [{"source": "model"}]}', '{"nodes": [{"source": "corrected"}]}',
            '{"nodes": [{"source": "completed"}]}', '{"nodes": [{"duplicate": true}]}', '{"marks": [{}]}'
        ]) AS part
        WHERE system = 'searchain' AND NOT weighing @> CAST(part AS jsonb)
    """
    return list(connection.exec_driver_sql(query).scalars())


def attempts_account_for_executions(connection: Connection, executions: Sequence[Execution]) -> Wrong:
    """No execution happened twice under one claim, or without one; each result that counts was executed or adopted."""
    query = """
        SELECT step_id, attempts.epoch, outcome FROM attempts JOIN steps ON id = step_id WHERE adopted_from IS NULL
    """
    rows = connection.execute(text(query))
    attempts = {Execution(step_id, epoch): outcome for step_id, epoch, outcome in rows}
    times = Counter(executions)
    twice = [f"{each} was executed {count} times" for each, count in times.items() if count > 1]
    unknown = [f"{each} was executed and is in no attempt" for each in times if each not in attempts]
    never = [
        f"{each} is finished and was never executed"
        for each, o in attempts.items()
        if o == "finished" and each not in times
    ]
    return twice + unknown + never


def no_message_left(redis: "Redis") -> Wrong:
    """Every queue is empty: Redis keeps no empty lists."""
    lists = [key for key in redis.scan_iter() if redis.type(key) == b"list"]
    return [f"{redis.llen(key)} messages are left in {key!r}" for key in lists]


def shown(wrong: Wrong) -> Wrong:
    """The first findings, and how many more there are."""
    return wrong[:SHOWN] + ([f"... and {len(wrong) - SHOWN} more such"] if len(wrong) > SHOWN else [])


def _told(connection: Connection, query: str) -> Wrong:
    return list(connection.execute(text(query)).scalars())
