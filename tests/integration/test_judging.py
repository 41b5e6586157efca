"""Judges' runs over recorded runs, whose record stays as it is: in-process workers, a real store, scripted models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.exc import IntegrityError

from cotrail import __version__
from cotrail.audit.bundles import bundle_pieces, read_bundle, write_bundle
from cotrail.audit.verification import verify
from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import attempts, paragraphs, questions, runs, steps
from cotrail.services.runs import forking, submission
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.judging import JudgeRequest, PreparedJudge, prepare_judge
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, close_runs, run_to_end, unsent
from tests.integration.stepping import begin as begin_costless

pytestmark = pytest.mark.usefixtures("verified")

SEA, RIVER, TOWN, LOST = "On which sea is it?", "On which river is it?", "Which town is it?", "Where is it lost?"
GOLD = {SEA: ["Amber Sea"], RIVER: ["Vell"], TOWN: ["Brenn"], LOST: ["Nowhere"]}
RIGHT, WRONG = "It is the Amber Sea", "It is the Grayle"


def said(verdict: str, confidence: int | None = 90, **more: Any) -> str:
    sure = {} if confidence is None else {"confidence": confidence}
    return json.dumps({"reasoning": "By the book.", "verdict": verdict} | sure | more)


def answers(verdicts: dict[str, str], otherwise: str) -> dict[str, Any]:
    """A model whose verdict depends on the answer that it is shown last."""
    return {"answer": otherwise, "answers": verdicts}


SCRIPTS: dict[str, dict[str, Any]] = {
    "writer": {
        "questions": {SEA: {"answer": RIGHT}, RIVER: {"answer": WRONG}, TOWN: {"answer": ""}},
        "default": {"answer": "Nowhere"},
        "failures": {LOST: {"message 0": "permanent"}},
    },
    "other": {"questions": {}, "default": {"answer": RIGHT}},
    "strict": {"questions": {}, "default": answers({RIGHT: said("correct", 95)}, said("incorrect"))},
    "vague": {"questions": {SEA: {"answer": "Yes, quite."}}, "default": {"answer": said("incorrect")}},
    "fond of the first": {"questions": {}, "default": {"answer": said("first")}},
    "fond of the sea": {
        "questions": {},
        "default": answers({RIGHT: said("second"), WRONG: said("first")}, said("tie")),
    },
    "reader": {
        "questions": {
            SEA: {"answer": json.dumps({"claims": ["It is big.", "It is deep.", "It is green."]})},
            "It is big.": {"answer": said("supported", None, cited=[1])},
            "It is deep.": {"answer": said("unsupported", None, cited=[])},
            "It is green.": {"answer": said("supported", None, cited=[7])},
        },
        "default": {"answer": json.dumps({"claims": []})},
    },
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the scripted models and the questions."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    tables = []
    for name, script in SCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name} | script))
        tables.append(f'[models."{name}"]\nengine = "scripted"\npath = "{name}.json"\n')
    (tmp_path / "models.toml").write_text("\n".join(tables))
    lines = [
        json.dumps({"id": f"q{n}", "question": text, "answers": gold}) for n, (text, gold) in enumerate(GOLD.items())
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    return tmp_path


Work = Callable[[str], str]


@pytest.fixture
def work(engine: Engine, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually) -> Work:
    """Carries out a run to its end and closes it; returns its id."""

    def work(run: str) -> str:
        for kind in KINDS:
            sent.extend(unsent(engine, kind))
        status = select(questions.c.status).where(questions.c.run_id == run, questions.c.status == "open")

        def ended() -> bool:
            while sent:
                perform(sent.pop(0), carry_out)
            return not query(status)

        eventually(ended, "the run has ended")
        close_runs(engine)
        return run

    return work


def begin(engine: Engine, home: Path, model: str = "writer", **more: Any) -> str:
    asked = {"system": "direct", "dataset": "jsonl", "questions": str(home / "questions.jsonl"), "model": model}
    return submission.submit(engine, submission.prepare(make_request(asked | more)))


@pytest.fixture
def run(engine: Engine, home: Path, work: Work) -> str:
    """A run that has ended: an answer that is right, one that is wrong, one that is empty, and a failure."""
    return work(begin(engine, home))


@pytest.fixture
def prepared(engine: Engine) -> Callable[..., PreparedJudge]:
    def prepared(run: str, model: str = "strict", **request: Any) -> PreparedJudge:
        with engine.connect() as connection:
            return prepare_judge(connection, JudgeRequest(run=run, model=model, **request))

    return prepared


@pytest.fixture
def judged(engine: Engine, work: Work, prepared: Callable[..., PreparedJudge]) -> Callable[..., str]:
    """Has a model judge a run; returns the judge's run."""
    return lambda run, model="strict", **request: work(
        submission.submit(engine, prepared(run, model, **request).prepared)
    )


def verdicts(query: Query, run: str) -> dict[str, Any]:
    """The status, verdict and details of each question."""
    asked = select(questions.c.key, questions.c.status, questions.c.answer, questions.c.weighing)
    return {
        row["key"]: (row["status"], row["answer"], row["weighing"])
        for row in query(asked.where(questions.c.run_id == run))
    }


def rows_of(query: Query, run: str) -> list[Any]:
    """Everything that is recorded of a run."""
    of_steps = select(steps).where(steps.c.run_id == run).order_by(steps.c.id)
    of_attempts = select(attempts).join(steps, steps.c.id == attempts.c.step_id).where(steps.c.run_id == run)
    return [
        query(select(runs).where(runs.c.id == run)),
        query(select(questions).where(questions.c.run_id == run).order_by(questions.c.id)),
        query(of_steps),
        query(of_attempts.order_by(attempts.c.step_id, attempts.c.epoch)),
    ]


def test_verdicts_stand_beside_the_judged_run_which_stays_as_it_is(
    run: str, judged: Callable[..., str], query: Query, engine: Engine
) -> None:
    before = rows_of(query, run)
    assert before[0][0]["digest"]
    judge = judged(run)
    assert rows_of(query, run) == before
    found = verdicts(query, judge)
    assert {key: (status, verdict) for key, (status, verdict, _) in found.items()} == {
        "q0": ("finished", "correct"),
        "q1": ("finished", "incorrect"),
        "q2": ("finished", "incorrect"),
    }
    details = found["q0"][2]
    assert (details["rubric"], details["score"], details["confidence"]) == ("correct", 1.0, 0.95)
    [row] = query(select(runs).where(runs.c.id == judge))
    assert (row["system"], row["settings"]["runs"], row["digest"] is None) == ("judge", [run], False)
    assert row["model"].startswith("strict@")
    assert row["provenance"]["judges"] == [{"run": run, "digest": before[0][0]["digest"]}]
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, judge, find_system)] == ["", "", ""]


def test_a_judged_question_is_sealed_with_what_it_judges(
    run: str, judged: Callable[..., str], query: Query, engine: Engine, tmp_path: Path
) -> None:
    judge = judged(run)
    first = select(questions.c.judged, questions.c.answers, questions.c.kind).where(
        questions.c.run_id == judge, questions.c.key == "q0"
    )
    [row] = query(first)
    [origin] = query(select(questions.c.digest).where(questions.c.run_id == run, questions.c.key == "q0"))
    assert row["judged"] == [{"run": run, "digest": origin["digest"], "answer": RIGHT}]
    assert row["answers"] == GOLD[SEA]
    bundle = tmp_path / "judge.zst"
    with engine.connect() as connection:
        write_bundle(bundle, bundle_pieces(read_trail(connection, judge), judge, __version__), judge)
    assert verify(read_bundle(bundle), bundled=True).findings == ()


@pytest.mark.amends
def test_an_answer_that_was_forged_is_named(run: str, judged: Callable[..., str], query: Query, engine: Engine) -> None:
    judge = judged(run)
    forged = [{"run": run, "digest": "d", "answer": "another"}]
    one = (questions.c.run_id == judge) & (questions.c.key == "q0")
    query(update(questions).where(one).values(judged=forged).returning(questions.c.id))
    with engine.connect() as connection:
        [finding] = verify(read_trail(connection, judge)).findings
    assert (finding.table, finding.question) == ("questions", "q0")


def test_what_is_judged_cannot_be_changed_while_it_is_judged(
    run: str, prepared: Callable[..., PreparedJudge], engine: Engine
) -> None:
    judge = submission.submit(engine, prepared(run).prepared)
    with pytest.raises(IntegrityError, match="final"), engine.begin() as connection:
        connection.execute(update(questions).where(questions.c.run_id == judge).values(judged=None))


def test_a_verdict_that_cannot_be_read_is_a_failure_and_no_wrong(
    run: str, judged: Callable[..., str], query: Query
) -> None:
    judge = judged(run, "vague")
    found = verdicts(query, judge)
    assert found["q0"] == ("failed", None, None)
    assert [found[key][:2] for key in ("q1", "q2")] == [("finished", "incorrect")] * 2
    [failed] = query(select(questions.c.reason).where(questions.c.run_id == judge, questions.c.status == "failed"))
    assert failed["reason"]["type"] == "UnansweredError"
    assert "another form" in failed["reason"]["message"]


def test_a_verdict_is_asked_for_in_a_queue_of_its_own(
    run: str, prepared: Callable[..., PreparedJudge], engine: Engine
) -> None:
    submission.submit(engine, prepared(run).prepared)
    assert len(unsent(engine, "judge")) == 3
    assert [kind for kind in KINDS if unsent(engine, kind)] == []


@pytest.mark.parametrize(
    ("model", "expected"), [("fond of the first", ("tie", 0.5, False)), ("fond of the sea", ("second", 0.0, True))]
)
def test_a_preference_is_asked_in_both_orders(
    model: str,
    expected: tuple[str, float, bool],
    run: str,
    engine: Engine,
    home: Path,
    work: Work,
    judged: Callable[..., str],
    query: Query,
) -> None:
    other = work(begin(engine, home, "other"))
    judge = judged(run, model, rubric="preference", against=other)
    found = verdicts(query, judge)
    assert found.keys() == {"q0", "q1", "q2"}, "q3 has an answer in one of the runs alone"
    details = found["q1"][2]
    assert (details["verdict"], details["score"], details["consistent"]) == expected
    assert len(query(select(steps.c.id).where(steps.c.run_id == judge))) == 6
    [row] = query(select(questions.c.judged).where(questions.c.run_id == judge, questions.c.key == "q1"))
    assert [(each["run"], each["answer"]) for each in row["judged"]] == [(run, WRONG), (other, RIGHT)]


def test_faithfulness_goes_claim_by_claim(run: str, judged: Callable[..., str], query: Query) -> None:
    judge = judged(run, "reader", rubric="faithful")
    found = verdicts(query, judge)
    assert found["q1"][1] == "no claims"
    status, verdict, details = found["q0"]
    # The run collected no paragraphs, so that nothing can be cited: not even what the judge says it can.
    assert (status, verdict, details["score"]) == ("finished", "unfaithful", 0.0)
    assert [(each["claim"], each["verdict"]) for each in details["claims"]] == [
        ("It is big.", "supported"),
        ("It is deep.", "unsupported"),
        ("It is green.", "supported"),
    ]


def test_claims_are_held_against_the_paragraphs_that_the_question_collected(
    engine: Engine, home: Path, judged: Callable[..., str], query: Query
) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin_costless(engine, 1, id="costless"))
    (home / "reader.json").write_text(
        json.dumps(
            {
                "name": "reader",
                "questions": {
                    "It is big.": {"answer": said("supported", None, cited=[1, 1])},
                    "It is deep.": {"answer": said("supported", None, cited=[999])},
                },
                "default": {"answer": json.dumps({"claims": ["It is big.", "It is deep."]})},
            }
        )
    )
    judge = judged("costless", "reader", rubric="faithful")
    _, verdict, details = verdicts(query, judge)["q0"]
    assert (verdict, details["score"]) == ("partly", 0.5)
    assert [each["cited"] for each in details["claims"]] == [[1], []]
    [origin] = query(select(questions.c.collected, questions.c.sentences).where(questions.c.run_id == "costless"))
    [asked] = query(select(questions.c.judged).where(questions.c.run_id == judge))
    [answer] = asked["judged"]
    assert [each["id"] for each in answer["paragraphs"]] == origin["collected"]
    assert answer["sentences"] == origin["sentences"]
    with engine.connect() as connection:
        prompt = rebuild_prompt(connection, judge, "q0", 1)
    assert all(each["title"] in prompt for each in answer["paragraphs"])


def test_answers_behind_whole_documents_are_recorded_in_parts(
    engine: Engine, home: Path, judged: Callable[..., str], query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin_costless(engine, 5, id="costless"))
    monkeypatch.setattr("cotrail.models.commands.submission.CHUNK_CHARACTERS", 1)
    judge = judged("costless", "reader", rubric="faithful")
    order = select(questions.c.key).where(questions.c.run_id == judge).order_by(questions.c.position)
    assert [row["key"] for row in query(order)] == [f"q{n}" for n in range(5)]


def test_a_fork_with_another_model_judges_the_same_answers_again(
    run: str, judged: Callable[..., str], work: Work, engine: Engine, query: Query
) -> None:
    judge = judged(run)
    forked = work(forking.fork(engine, ForkRequest(run=judge, changes={"model": "vague"})).run)
    assert verdicts(query, forked)["q1"][1] == "incorrect"
    asked = select(questions.c.key, questions.c.judged).order_by(questions.c.key)
    assert query(asked.where(questions.c.run_id == forked)) == query(asked.where(questions.c.run_id == judge))
    of_runs = select(runs.c.provenance["judges"]).order_by(runs.c.created_at)
    assert len({str(row) for row in query(of_runs.where(runs.c.id.in_((judge, forked))))}) == 1
    with pytest.raises(InputError, match="judge by another one with `cotrail judge`"):
        forking.fork(engine, ForkRequest(run=judge, changes={"rubric.words": "Is {answer} in {paragraphs}?"}))


def test_pruning_the_judged_run_leaves_the_verdicts(
    run: str, judged: Callable[..., str], cotrail: Cotrail, engine: Engine, query: Query
) -> None:
    judge = judged(run)
    before = verdicts(query, judge)
    assert cotrail("prune", run, "--yes").exit_code == 0
    assert verdicts(query, judge) == before
    assert query(select(paragraphs.c.digest)), "the answers that prompts show are kept for the judge's run"
    with engine.connect() as connection:
        assert verify(read_trail(connection, judge)).findings == ()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown rubric": ({"rubric": "simple-qa"}, r"no rubric 'simple-qa' \(did you mean simpleqa\?\)"),
    "a pair without the other": ({"rubric": "preference"}, "compares two runs: name the other one with --against"),
    "another run for one answer": ({"against": "latest"}, "leave out --against, or take --rubric preference"),
    "the run itself": ({"rubric": "preference", "against": "latest"}, "can't be compared with itself"),
    "an unknown model": ({"model": "none"}, "there is no model 'none'"),
    "a run that isn't there": ({"run": "nothing-1"}, "there is no run 'nothing-1'"),
}


@pytest.mark.parametrize(("request_", "said_"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_judged_is_refused(
    request_: dict[str, Any], said_: str, run: str, prepared: Callable[..., PreparedJudge], query: Query
) -> None:
    with pytest.raises((InputError, UnknownNameError), match=said_):
        prepared(**({"run": run} | request_))
    assert len(query(select(runs.c.id))) == 1


def test_a_run_that_is_not_over_is_refused(
    engine: Engine, home: Path, here: Runtime, prepared: Callable[..., PreparedJudge]
) -> None:
    run = begin(engine, home)
    with pytest.raises(InputError, match=rf"4 questions without an end: wait for it \(`cotrail watch {run}`\)"):
        prepared(run)


def test_a_judge_s_run_is_judged_by_nobody(
    run: str, judged: Callable[..., str], prepared: Callable[..., PreparedJudge]
) -> None:
    judge = judged(run)
    with pytest.raises(InputError, match=f"is a judge's own run: name the run that it judged, {run}"):
        prepared(judge)


def test_runs_over_other_questions_have_no_preference(
    run: str, engine: Engine, home: Path, work: Work, prepared: Callable[..., PreparedJudge]
) -> None:
    other = work(begin(engine, home, "other", limit=2))
    with pytest.raises(InputError, match="have other questions"):
        prepared(run, rubric="preference", against=other)


def test_published_answers_are_needed_where_the_rubric_shows_them(
    engine: Engine, home: Path, work: Work, prepared: Callable[..., PreparedJudge]
) -> None:
    lines = [json.dumps({"id": f"q{n}", "question": text}) for n, text in enumerate(GOLD)]
    (home / "questions.jsonl").write_text("\n".join(lines))
    run = work(begin(engine, home))
    with pytest.raises(InputError, match="goes by the published answers, and the dataset jsonl has none"):
        prepared(run)
    assert len(prepared(run, rubric="faithful").prepared.questions) == 3


def test_the_system_is_not_submitted_by_itself(home: Path) -> None:
    asked = {"system": "judge", "dataset": "jsonl", "questions": str(home / "questions.jsonl")}
    with pytest.raises(InputError, match="`cotrail judge RUN`"):
        submission.prepare(make_request(asked))


def test_the_command_submits_a_run_for_each_model(
    run: str, cotrail: Cotrail, work: Work, query: Query, home: Path
) -> None:
    done = cotrail("judge", run, "--model", "strict", "--model", "vague", "--limit", 2, "--tag", "graded", "--json")
    assert done.exit_code == 0, done.output
    strict, vague = json.loads(done.stdout)
    assert {key: strict[key] for key in ("judged", "rubric", "model", "questions", "left_out")} == {
        "judged": [run],
        "rubric": "correct",
        "model": "strict",
        "questions": 2,
        "left_out": 1,
    }
    assert vague["model"] == "vague"
    work(strict["run"])
    assert {key: found[1] for key, found in verdicts(query, strict["run"]).items()} == {
        "q0": "correct",
        "q1": "incorrect",
    }
    listed = cotrail("runs", "--filter", "tag=graded", "--json")
    assert {each["run"] for each in json.loads(listed.stdout)} == {strict["run"], vague["run"]}


def test_the_command_says_what_it_does_and_what_it_may_take(run: str, cotrail: Cotrail, home: Path) -> None:
    done = cotrail("judge", run, "--model", "strict", "--rubric", "simpleqa")
    assert done.exit_code == 0, done.output
    assert f"strict judges 3 answers of {run} by simpleqa; 1 question without an answer to judge." in done.output
    estimated = cotrail("judge", run, "--model", "strict", "--estimate")
    assert "judge on 3 questions of jsonl with strict" in estimated.output
    refused = cotrail("judge", run, "--model", "strict", "--model", "vague", "--name", "mine")
    assert isinstance(refused.exception, InputError)
    assert "--name names one run" in str(refused.exception)


def test_a_trace_shows_the_judged_answer_the_verdict_and_its_reasons(
    run: str, judged: Callable[..., str], cotrail: Cotrail, home: Path
) -> None:
    judge = judged(run)
    shown = " ".join(cotrail("trace", judge, "q1").stdout.split())
    assert f"judged in {run} {WRONG} verdict incorrect by correct, score 0.0 %, 90 % sure reasons By the book." in shown
    assert "paragraph recall" not in shown, "a verdict is no answer"
    claims = cotrail("trace", judged(run, "reader", rubric="faithful"), "q0").stdout
    assert "claim verdict cited" in " ".join(claims.split())
    assert "It is deep. unsupported none" in " ".join(claims.split())


def test_a_rubric_of_ones_own_is_sealed_with_the_run(
    run: str, home: Path, judged: Callable[..., str], query: Query
) -> None:
    own = home / "own.toml"
    own.write_text(
        'name = "own"\ntitle = "Own"\nwords = "Is {answer} like {answers}?"\n'
        'verdicts = [{ name = "correct", score = 1 }, { name = "incorrect", score = -0.5 }]\nconfidence = true\n'
    )
    judge = judged(run, rubric=str(own))
    [row] = query(select(runs.c.settings, runs.c.provenance).where(runs.c.id == judge))
    assert row["settings"]["rubric"]["words"] == "Is {answer} like {answers}?"
    assert row["provenance"]["files"]["rubric"]["path"] == str(own)
    found = verdicts(query, judge)
    assert [found[key][2]["score"] for key in ("q0", "q1")] == [1.0, -0.5]
