"""Runs that are repeated with other seeds, on a real store: submitted together, told apart, scored together."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, select

from cotrail.configuration.settings import settings
from cotrail.core.actions.generate import Prompted
from cotrail.core.repeats import read_repeat
from cotrail.core.results import Generated
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import build_index
from cotrail.errors import InputError
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.tables import questions, run_labels, runs, steps
from cotrail.services.runs.conducting import Schedule, begin
from cotrail.services.runs.experiments import ExperimentProgress, read_experiment_file
from cotrail.systems.registry import find_system
from tests.faults.stacked import SAMPLE
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, MILLISECONDS, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

ASKED = 4


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    asked = [{"id": f"q{n}", "question": f"What is {n}?", "answers": [str(n)]} for n in range(ASKED)]
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in asked))
    shutil.copy(SAMPLE / "demonstrations.txt", tmp_path)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


def submit(cotrail: Cotrail, home: Path, *options: Any) -> list[dict[str, Any]]:
    """The runs that are submitted, as the command prints them."""
    asked = ("--system", "no-retrieval", "--dataset", "jsonl", "--questions", home / "questions.jsonl")
    shown = ("--demonstrations", home / "demonstrations.txt", "--model", "scripted", "--json")
    done = cotrail("submit", *asked, *shown, *options)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return [json.loads(line) for line in done.stdout.splitlines()]


def answered(claim: Claim | None, seeds: dict[str, Sequence[int]]) -> Completion:
    """The question's own number where the run's seed is one of those with which it is right, otherwise another."""
    done = completed(claim)
    assert claim is not None
    assert isinstance(done.outcome, Generated)
    assert isinstance(claim.action, Prompted)
    number = claim.action.prompt.question.removeprefix("What is ").removesuffix("?")
    right = claim.run.binding.seed in seeds.get(f"q{number}", ())
    text = number if right else "wrong"
    outcome = replace(done.outcome, text=text, raw=text)
    return Completion(claim=claim, outcome=outcome, milliseconds=MILLISECONDS)


def carry_out(engine: Engine, seeds: dict[str, Sequence[int]]) -> int:
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = [message for kind in ("reason", "read") for message in unsent(engine, kind)]
    done = 0
    while messages:
        claims = ledger.claim(messages)
        done += len(claims)
        messages = [m for following in ledger.commit([answered(each, seeds) for each in claims]) for m in following]
    return done


def test_each_repeat_is_a_run_with_its_own_seed_that_says_which_it_is(
    home: Path, cotrail: Cotrail, query: Query
) -> None:
    submitted = submit(cotrail, home, "--repeat", "3", "--seed", "5", "--temperature", "0.7", "--name", "thrice")
    ids = [each["run"] for each in submitted]
    rows = {row["id"]: row for row in query(select(runs))}
    assert [rows[run]["seed"] for run in ids] == [5, 6, 7]
    repeats = [read_repeat(rows[run]["provenance"]) for run in ids]
    assert [(each.of, each.number, each.times) for each in repeats if each] == [(ids[0], n, 3) for n in (1, 2, 3)]
    labels = {row["run_id"]: row["name"] for row in query(select(run_labels))}
    assert [labels[run] for run in ids] == ["thrice", "thrice-2", "thrice-3"]
    assert len({row["created_at"] for row in rows.values()}) == 1


def test_latest_is_the_first_and_the_list_filters_and_counts_them(home: Path, cotrail: Cotrail) -> None:
    submit(cotrail, home)
    ids = [each["run"] for each in submit(cotrail, home, "--repeat", "3", "--profile", "fast")]
    listed = json.loads(cotrail("runs", "--filter", f"repeat={ids[0]}", "--json").stdout)
    assert [each["run"] for each in listed] == ids
    assert listed[1]["repeat"] == {"of": ids[0], "number": 2, "times": 3}
    assert " 2/3 " in cotrail("runs").stdout
    assert json.loads(cotrail("show", "latest", "--json").stdout)["run"] == ids[0]
    assert f"2 of 3, the first is {ids[0]}" in cotrail("show", ids[1]).stdout


def test_they_are_submitted_all_or_none(home: Path, cotrail: Cotrail, query: Query) -> None:
    with pytest.raises(InputError, match="at most 100 characters"):
        submit(cotrail, home, "--repeat", "2", "--name", "n" * 100)
    with pytest.raises(InputError, match="the last of 2 repeats has no seed"):
        submit(cotrail, home, "--repeat", "2", "--seed", str(2**31 - 1))
    for times in ("0", "1001"):
        with pytest.raises(InputError, match="`repeat` must be"):
            submit(cotrail, home, "--repeat", times)
    assert query(select(runs.c.id)) == []


def test_a_submission_that_dies_on_the_way_leaves_none(
    home: Path, cotrail: Cotrail, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []

    def die(connection: Connection, run: str) -> None:
        woken.append(run)
        if len(woken) == 2:
            raise ConnectionError("gone")

    with monkeypatch.context() as patch:
        patch.setattr("cotrail.models.commands.submission.notify", die)
        with pytest.raises(ConnectionError, match="gone"):
            submit(cotrail, home, "--repeat", "3")
    assert query(select(runs.c.id)) == query(select(questions.c.id)) == []
    assert len(submit(cotrail, home, "--repeat", "3")) == 3


def test_it_says_where_repeats_can_not_differ(home: Path, cotrail: Cotrail) -> None:
    asked = ("submit", "--system", "no-retrieval", "--dataset", "jsonl", "--questions", home / "questions.jsonl")
    always = (*asked, "--model", "scripted", "--repeat", "2", "--profile")
    assert "All repeats will be equal" in cotrail(*always, "deterministic").stderr
    assert "All repeats" not in cotrail(*always, "deterministic", "--temperature", "0.5").stderr
    assert "All repeats" not in cotrail(*always, "fast").stderr


def test_no_repeat_adopts_a_step_of_another(home: Path, engine: Engine, cotrail: Cotrail, query: Query) -> None:
    submit(cotrail, home, "--repeat", "3", "--profile", "fast")
    assert carry_out(engine, {}) == 3 * ASKED
    recorded = query(select(steps.c.adopted_from, steps.c.shared_in, steps.c.fingerprint))
    assert {(row["adopted_from"], row["shared_in"]) for row in recorded} == {(None, None)}
    assert len({row["fingerprint"] for row in recorded}) == 3 * ASKED


def test_all_of_them_are_waited_for_and_estimated(
    home: Path, engine: Engine, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers work while the command pauses.
    monkeypatch.setattr("cotrail.services.runs.watching.pause_after", lambda _: 0 * carry_out(engine, {}))
    done = submit(cotrail, home, "--repeat", "3", "--profile", "fast", "--wait")
    assert [(each["questions"], each["finished"], each["open"]) for each in done] == [(ASKED, ASKED, 0)] * 3
    [estimate] = submit(cotrail, home, "--repeat", "3", "--estimate")
    assert (estimate["questions"], estimate["most"]["steps"]) == (3 * ASKED, 3 * ASKED)


def test_they_are_scored_together(home: Path, engine: Engine, cotrail: Cotrail, query: Query) -> None:
    ids = [each["run"] for each in submit(cotrail, home, "--repeat", "2", "--profile", "fast")]
    carry_out(engine, {"q0": (0, 1), "q1": (0,), "q2": (0,)})
    assert len(query(select(questions.c.id).where(questions.c.answer.is_not(None)))) == 2 * ASKED
    scores = [json.loads(cotrail("score", run, "--json").stdout) for run in ids]
    assert [each["metrics"]["answer_em"] for each in scores] == [0.75, 0.25]
    assert scores[0]["repeats"] == scores[1]["repeats"]
    assert (scores[0]["repeats"]["runs"], scores[0]["repeats"]["times"]) == (ids, 2)
    em = scores[0]["repeats"]["metrics"]["answer_em"]
    # Means of the questions: 1, 0.5, 0.5, 0; their deviation is (0.5 / 3)**0.5, over the root of 4.
    assert em["mean"] == 0.5
    assert em["standard_error"] == pytest.approx((0.5 / 3) ** 0.5 / 2)
    assert em["interval"]["questions"] == ASKED
    assert em["deviation"] == pytest.approx(0.5 / 2**0.5)
    assert [(each["k"], each["mean"]) for each in em["pass_at"]] == [(1, 0.5), (2, 0.75)]
    assert scores[0]["repeats"]["metrics"]["answer_f1"]["pass_at"] == []
    printed = cotrail("score", ids[0]).stdout
    assert f"Over 2 repeats: {', '.join(ids)}" in printed
    assert "pass@2" in printed


def test_repeats_that_were_removed_are_told(home: Path, engine: Engine, cotrail: Cotrail) -> None:
    ids = [each["run"] for each in submit(cotrail, home, "--repeat", "3", "--profile", "fast")]
    carry_out(engine, {})
    assert cotrail("prune", ids[0], "--yes").exit_code == 0
    assert f"Over 3 repeats, 1 of which removed: {ids[1]}, {ids[2]}" in cotrail("score", ids[2]).stdout


def test_a_run_that_is_not_repeated_says_nothing_of_repeats(home: Path, engine: Engine, cotrail: Cotrail) -> None:
    [only] = submit(cotrail, home)
    carry_out(engine, {})
    assert json.loads(cotrail("score", only["run"], "--json").stdout)["repeats"] is None
    assert "repeat" not in cotrail("score", only["run"]).stdout


COMPARED = """
protocol = "compare"
name = "often"
models = ["scripted"]
systems = ["one-step"]
temperature = 0.7
repeat = {times}

[datasets.jsonl]
questions = "questions.jsonl"
corpus = "sample"
demonstrations = "demonstrations.txt"

[[variations]]
name = "direct"
run = {{ reader = "direct" }}
"""


def compare(engine: Engine, home: Path, times: int) -> None:
    """Conducts a comparison of two runs, each so many times, with the work done in this process."""
    build_index(read_corpus([SAMPLE / "corpus.jsonl"]), home / "corpora" / "sample")
    (home / "often.toml").write_text(COMPARED.format(times=times))
    schedule = Schedule(read_experiment_file(home / "often.toml"), home)
    ledger = Ledger(engine, "w", LEASE, find_system)

    def work(_: ExperimentProgress) -> None:
        for kind in ("retrieve", "reason", "read"):
            run_to_end(ledger, unsent(engine, kind))

    begin(engine, schedule, schedule.plan(), reuse=True).conduct(work)


def test_runs_of_an_experiment_adopt_steps_and_repeats_of_theirs_do_not(
    home: Path, engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.services.runs.conducting.POLL_SECONDS", 0)
    compare(engine, home, 3)
    recorded = query(
        select(runs.c.cell, runs.c.seed, steps.c.kind, steps.c.adopted_from, steps.c.fingerprint).join(steps)
    )
    assert {(row["cell"], row["seed"]) for row in recorded} == {
        (f"jsonl/scripted/one-step{variation}{repeat}", seed)
        for variation in ("", "/direct")
        for seed, repeat in enumerate(("", "/repeat-2", "/repeat-3"))
    }
    assert not [row for row in recorded if row["adopted_from"]]
    samples = [row["fingerprint"] for row in recorded if row["kind"] != "retrieve" and "direct" not in row["cell"]]
    assert len(set(samples)) == len(samples) == 3 * ASKED
    searched = [row["fingerprint"] for row in recorded if row["kind"] == "retrieve"]
    assert len(set(searched)) < len(searched)  # which would have been adopted


def test_without_repeats_they_do(home: Path, engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotrail.services.runs.conducting.POLL_SECONDS", 0)
    compare(engine, home, 1)
    assert query(select(steps.c.id).where(steps.c.adopted_from.is_not(None)))


def test_repeats_of_an_experiment_are_scored_together(
    home: Path, engine: Engine, cotrail: Cotrail, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.services.runs.conducting.POLL_SECONDS", 0)
    compare(engine, home, 2)
    ids = {row["cell"]: row["id"] for row in query(select(runs.c.cell, runs.c.id))}
    direct = [ids["jsonl/scripted/one-step/direct"], ids["jsonl/scripted/one-step/direct/repeat-2"]]
    assert json.loads(cotrail("score", direct[1], "--json").stdout)["repeats"]["runs"] == direct
    tables = {
        each["name"]: each for each in json.loads(cotrail("experiment", "report", "often", "--json").stdout)["tables"]
    }
    assert {row["values"]["run"] for row in tables["repeats"]["rows"]} == {
        "jsonl/scripted/one-step",
        "jsonl/scripted/one-step/direct",
    }


def test_a_run_of_an_experiment_is_not_repeated_by_itself(home: Path, engine: Engine) -> None:
    build_index(read_corpus([SAMPLE / "corpus.jsonl"]), home / "corpora" / "sample")
    (home / "often.toml").write_text(COMPARED.format(times=1).replace('reader = "direct"', "repeat = 2"))
    with pytest.raises(InputError, match="`repeat` stands at the file's beginning"):
        Schedule(read_experiment_file(home / "often.toml"), home).check()
