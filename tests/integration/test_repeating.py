"""`cotrail repeat` on a real store: which steps are drawn, what is taken over, and what comes out otherwise."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select, update

from cotrail.configuration.settings import settings
from cotrail.core.repeats import read_repeated_steps
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, begin, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

ORIGIN, ASKED = "costless", 20
MODEL_STEPS = (1, 3, 5, 6)
"""The steps of each question that the model carries out."""

Finish = Callable[[Claim | None], Completion]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a model of the name that runs here are submitted with."""
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    (tmp_path / "models.toml").write_text('[models.costless]\nengine = "scripted"\npath = "script.json"\n')
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def origin(home: Path, engine: Engine) -> Engine:
    """The store with a run of twenty questions, all finished."""
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, ASKED))
    return engine


def by_chance(claim: Claim | None) -> Completion:
    """What a model comes to that never writes the same twice; searches find the same."""
    done = completed(claim)
    if not isinstance(done.outcome, Generated):
        return done
    return replace(done, outcome=replace(done.outcome, text=f"{done.outcome.text} Or not.", raw=done.outcome.raw))


def carry_out(engine: Engine, finish: Finish = completed) -> int:
    """What workers do with what is open; returns how many steps they carried out."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = [message for kind in ("retrieve", "reason", "read") for message in unsent(engine, kind)]
    done = 0
    while messages:
        claims = ledger.claim(messages)
        done += len(claims)
        messages = [m for following in ledger.commit([finish(claim) for claim in claims]) for m in following]
    return done


def said(cotrail: Cotrail, *arguments: Any) -> dict[str, Any]:
    done = cotrail("repeat", *arguments, "--no-wait", "--json")
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_share_of_the_questions_is_drawn_and_a_step_of_each(origin: Engine, cotrail: Cotrail, query: Query) -> None:
    begun = said(cotrail, "latest", "--share", "40%", "--seed", "3")
    assert (begun["origin"], begun["questions"], begun["steps"]) == (ORIGIN, ASKED, 8)
    [row] = query(select(runs).where(runs.c.id == begun["run"]))
    sealed = read_repeated_steps(row["provenance"])
    assert sealed is not None
    assert (sealed.run, sealed.share, sealed.seed, sealed.kinds) == (ORIGIN, 0.4, 3, ("reason", "read", "judge"))
    assert row["provenance"]["plan"]["questions"]["count"] == len(sealed.steps)
    assert (row["origin"], row["seed"], row["reuse"]) == (ORIGIN, 0, False)
    assert set(sealed.steps.values()) <= set(MODEL_STEPS)
    assert len(set(sealed.steps.values())) > 1
    asked = query(select(questions.c.key).where(questions.c.run_id == begun["run"]).order_by(questions.c.position))
    assert [each["key"] for each in asked] == list(sealed.steps)
    taken = query(
        select(questions.c.key, steps.c.sequence, steps.c.worker)
        .join(steps)
        .where(questions.c.run_id == begun["run"], steps.c.adopted_from.is_not(None))
    )
    assert {(row["key"], row["sequence"]) for row in taken} == {
        (key, before) for key, step in sealed.steps.items() for before in range(step)
    }
    assert {row["worker"] for row in taken} == {"fork, as given"}
    shown = cotrail("show", begun["run"]).stdout
    assert "8 steps of costless, drawn by seed 3" in shown


def test_the_same_seed_draws_the_same_steps(origin: Engine, cotrail: Cotrail, query: Query) -> None:
    drawn = []
    for seed in (1, 1, 2):
        run = said(cotrail, ORIGIN, "--share", "0.3", "--seed", seed)["run"]
        [row] = query(select(runs.c.provenance).where(runs.c.id == run))
        drawn.append(row["provenance"]["repeats"]["from"])
    assert drawn[0] == drawn[1] != drawn[2]


def test_of_a_model_that_writes_the_same_no_step_comes_out_otherwise(origin: Engine, cotrail: Cotrail) -> None:
    run = said(cotrail, ORIGIN, "--share", "100%")["run"]
    assert ASKED <= carry_out(origin) < ASKED * STEPS
    report = said(cotrail, run)
    assert (report["drawn"], report["open"], report["failed"], report["changed"], report["removed"]) == (20, 0, 0, 0, 0)
    assert (report["steps"]["otherwise"], report["steps"]["of"], report["steps"]["share"]) == (0, 20, 0)
    assert report["steps"]["interval"]["method"] == "clopper-pearson"
    assert (report["answers"]["otherwise"], report["answers"]["of"]) == (0, 20)
    assert report["differing"] == []


def test_of_one_that_never_does_all_come_out_otherwise_and_are_shown(origin: Engine, cotrail: Cotrail) -> None:
    run = said(cotrail, ORIGIN, "--share", "50%")["run"]
    carry_out(origin, by_chance)
    report = said(cotrail, run)
    assert (report["steps"]["otherwise"], report["steps"]["of"]) == (10, 10)
    assert report["answers"]["otherwise"] == 10
    assert sum(each["steps"]["of"] for each in report["by_engine"]) == 10
    assert {each["kind"] for each in report["by_engine"]} == {"read", "reason"}
    assert {each["profile"] for each in report["by_engine"]} == {"fast"}
    assert all(each["again"] == f"{each['recorded']} Or not." for each in report["differing"])
    printed = cotrail("repeat", run)
    assert printed.exit_code == 0
    assert f"{run}: 10 of 10 questions finished" in printed.stdout
    assert "100.0 %" in printed.stdout
    assert "again:    " in printed.stdout


def test_the_command_waits_and_prints_what_came_out(
    origin: Engine, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers work while the command pauses.
    monkeypatch.setattr("cotrail.services.runs.watching.pause_after", lambda _: 0 * carry_out(origin, by_chance))
    done = cotrail("repeat", ORIGIN, "--share", "25%")
    assert done.exit_code == 0, done.output
    assert "repeats 5 steps of costless, one each of 5 of 20 questions." in done.stdout
    assert "5 of 5 questions finished" in done.stdout
    assert " 5          5  100.0 %" in done.stdout


def test_searches_are_repeated_where_they_are_named(origin: Engine, cotrail: Cotrail) -> None:
    run = said(cotrail, ORIGIN, "--share", "100%", "--kind", "retrieve")["run"]
    carry_out(origin, by_chance)
    report = said(cotrail, run)
    [searches] = report["by_engine"]
    assert (searches["kind"], searches["steps"]["of"], searches["steps"]["otherwise"]) == ("retrieve", ASKED, 0)
    assert report["answers"]["otherwise"] == ASKED  # what follows them was written by chance


def test_a_search_that_finds_something_else_is_told(origin: Engine, cotrail: Cotrail) -> None:
    run = said(cotrail, ORIGIN, "--share", "10%", "--kind", "retrieve")["run"]

    def nothing(claim: Claim | None) -> Completion:
        done = completed(claim)
        return replace(done, outcome=Retrieved(hits=())) if isinstance(done.outcome, Retrieved) else done

    carry_out(origin, nothing)
    assert said(cotrail, run)["steps"]["otherwise"] == 2


def test_steps_that_have_no_result_are_counted_apart(origin: Engine, cotrail: Cotrail) -> None:
    run = said(cotrail, ORIGIN, "--share", "10%")["run"]
    report = said(cotrail, run)
    assert (report["open"], report["steps"]["of"], report["steps"]["share"]) == (2, 0, None)
    assert "Not counted: 2 not carried out yet." in cotrail("repeat", run, "--no-wait").stdout
    carry_out(origin, lambda claim: completed(claim, Failure(type="StepError", message="no")))
    report = said(cotrail, run)
    assert (report["open"], report["failed"], report["steps"]["of"]) == (0, 2, 0)


@pytest.mark.amends
def test_a_step_that_is_asked_for_otherwise_is_no_repeat(origin: Engine, cotrail: Cotrail, query: Query) -> None:
    run = said(cotrail, ORIGIN, "--share", "10%")["run"]
    carry_out(origin)
    query(update(steps).where(steps.c.run_id == ORIGIN).values(fingerprint="another").returning(steps.c.id))
    report = said(cotrail, run)
    assert (report["changed"], report["steps"]["of"]) == (2, 0)


def test_at_least_one_step_is_repeated(origin: Engine, cotrail: Cotrail) -> None:
    assert said(cotrail, ORIGIN)["steps"] == 1
    assert said(cotrail, ORIGIN, "--share", "0.001")["steps"] == 1


def test_steps_that_were_given_are_not_drawn(origin: Engine, cotrail: Cotrail) -> None:
    forked = json.loads(cotrail("fork", ORIGIN, "--at", "read", "--set", "reader=cot", "--json").stdout)["run"]
    carry_out(origin)
    run = said(cotrail, forked, "--share", "100%")["run"]
    carry_out(origin)
    assert [each["kind"] for each in said(cotrail, run)["by_engine"]] == ["read"]


@pytest.mark.parametrize("share", ["0", "0%", "101%", "1.5", "two", "-1%", "2%%", "nan", "inf"])
def test_what_is_no_share_is_refused(share: str, origin: Engine, cotrail: Cotrail, query: Query) -> None:
    with pytest.raises(InputError, match="is no share of the questions: write 2%"):
        said(cotrail, ORIGIN, "--share", share)
    assert len(query(select(runs.c.id))) == 1


def test_what_can_not_be_repeated_is_refused(origin: Engine, cotrail: Cotrail, query: Query) -> None:
    with pytest.raises(InputError, match="there is no kind of step 'reed'"):
        said(cotrail, ORIGIN, "--kind", "reed")
    with pytest.raises(InputError, match="run costless has no lookup step with a result yet"):
        said(cotrail, ORIGIN, "--kind", "lookup")
    assert len(query(select(runs.c.id))) == 1
    run = said(cotrail, ORIGIN)["run"]
    with pytest.raises(InputError, match="repeats steps of costless; name that run to repeat others"):
        said(cotrail, run, "--share", "5%")
    carry_out(origin)
    assert cotrail("prune", ORIGIN, "--yes").exit_code == 0
    with pytest.raises(UnknownNameError, match=r"run costless, of which .* repeats steps, was removed"):
        said(cotrail, run)
