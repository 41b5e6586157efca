"""A run's state in one word, its speed, and the line that it ends with."""

from decimal import Decimal
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from cotrail.cli.terminal.following import progress_lines, unwatched_line
from cotrail.cli.terminal.run_text import closing_line
from cotrail.core.budgets import Budget, Budgets, Consumed
from cotrail.core.money import Spent, Usage
from cotrail.models.queries.progress import Progress
from cotrail.models.queries.runs import state_of
from cotrail.models.records.budgets import Blockage
from cotrail.services.runs.progress import run_progress
from cotrail.services.runs.speed import RunSpeed, WatchedRun, blockage_line, expected_steps
from tests.cases import each_case
from tests.unit.test_remaining_time import counts


@each_case(
    ("desired", "counts", "stopped", "said"),
    [
        ("active", {"open": 1, "blocked": 1}, False, "running"),
        ("active", {"open": 1, "blocked": 1}, True, "blocked"),
        ("paused", {"open": 1, "blocked": 0}, False, "paused"),
        ("paused", {"open": 0, "blocked": 0}, False, "finished"),
        ("active", {"open": 0, "blocked": 1}, False, "blocked"),
        ("cancelled", {"open": 0, "blocked": 0}, False, "cancelled"),
    ],
)
def test_a_run_has_one_state(desired: str, counts: dict[str, int], *, stopped: bool, said: str) -> None:
    assert state_of(desired, counts, stopped=stopped) == said


def progress(done: int, *, finished: int = 2, total: int = 4, due: int = 0, busy: bool = False) -> Progress:
    statuses = {"open": total - finished, "finished": finished, "failed": 0, "blocked": 0, "cancelled": 0}
    steps = replace(counts("reason", done, 0, 0, 5 * finished, 0, 0), ready=due, under_way=due, due=due, busy=busy)
    return Progress(run="r", desired_state="active", questions=statuses, kinds=(steps,), seconds=9.5)


def test_the_steps_of_the_whole_run_follow_from_finished_questions_once_there_are_enough() -> None:
    assert expected_steps(progress(22, total=10)) is None
    assert expected_steps(progress(30, finished=6, total=10)) == 50


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    speed = RunSpeed()
    for second in range(100):
        speed.note(progress(0 if second < 60 else 10 * (second - 60)), float(second))
    assert speed.rate == pytest.approx(10)


def test_steps_that_wait_behind_others_are_not_without_a_worker() -> None:
    speed = RunSpeed()
    waiting = progress(3, due=5, busy=True)
    for second in (0.0, 60.0):
        speed.note(waiting, second)
    assert speed.waits_for(waiting) is None
    abandoned = progress(3, due=5)
    for second in (61.0, 80.0):
        speed.note(abandoned, second)
    assert "no worker has taken one for 19 s" in str(speed.waits_for(abandoned))


@each_case(
    ("desired", "finished", "said"),
    [
        ("active", 2, "The run continues. `cotrail watch r` shows it again."),
        ("paused", 2, "The run stays paused. `cotrail resume r` continues it."),
        ("cancelled", 2, "The run is cancelled. `cotrail show r` shows it."),
        ("active", 4, "The run is finished. `cotrail show r` shows it."),
    ],
)
def test_who_ends_watching_is_told_what_becomes_of_the_run(desired: str, finished: int, said: str) -> None:
    assert unwatched_line("r", replace(progress(10, finished=finished), desired_state=desired).state) == said


def test_cancelled_questions_are_not_done() -> None:
    statuses = {"open": 0, "finished": 2, "failed": 1, "blocked": 0, "cancelled": 997}
    assert run_progress(replace(progress(10), desired_state="cancelled", questions=statuses)).done == 3


@each_case(("questions", "said"), [(1, "after 1 question was"), (20, "after 20 questions were")])
def test_the_verb_follows_the_count(questions: int, said: str) -> None:
    assert said in blockage_line("r", Blockage(type="CorpusError", message="gone", questions=questions))


def test_the_closing_line_says_what_did_not_finish() -> None:
    assert closing_line(run_progress(progress(10))) == "r: 2 of 4 questions finished, 2 open; 10 steps in 9.5 s."


def lines(of: Progress) -> str:
    """What `watch` prints of it where its output is no terminal."""
    screen = Console(file=StringIO(), width=300)
    progress_lines(screen)(WatchedRun(progress=run_progress(of), answers=True))
    return " ".join(screen.file.getvalue().split())  # type: ignore[attr-defined]


def test_money_and_what_is_left_of_a_budget_are_watched() -> None:
    spent = Spent(usage=Usage(calls=1), dollars=Decimal("1.25"))
    budgets = Budgets(run=Budget(money=5, tokens=1000))
    consumed = Consumed(steps=10, tokens=1200, money=Decimal("1.25"))
    watched = replace(progress(10), spent=spent, budgets=budgets, consumed=consumed)
    assert "left: 0 of 1,000 tokens, $3.75 of $5.00, $1.25" in lines(watched)
    ends = {"answer": 1, "limit: run tokens": 1}
    said = closing_line(run_progress(replace(watched, ends=ends)))
    assert said == "r: 2 of 4 questions finished, 2 open; 10 steps in 9.5 s; 1 limit: run tokens; $1.25."


def test_of_a_run_that_costs_nothing_no_money_is_told() -> None:
    assert "$" not in lines(progress(10))
    assert "left" not in lines(progress(10))
