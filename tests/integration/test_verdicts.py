"""What judges say of a run, in the store and on the command line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, func, select

from cotrail.core.actions.generate import Judge
from cotrail.errors import InputError
from cotrail.models.commands.control import cancel
from cotrail.models.schema.tables import runs
from cotrail.services.results.judges import show_calibration, verdict_scores
from cotrail.services.results.verdicts import JudgeVerdicts, RunVerdicts, run_verdicts, verdicts_on
from cotrail.services.runs.labels import find_run
from cotrail.systems.judge.rubric import built_in
from tests.integration.conftest import Cotrail
from tests.integration.judged import KEYS, OTHER, RUN, UNREADABLE, Said, answer, judge, verdict, verdicts
from tests.unit.test_run_report import Page

pytestmark = pytest.mark.usefixtures("verified")

STRICT: Mapping[str, Said] = {
    "q0": verdict("correct", 90),
    "q1": verdict("correct", 80),
    "q2": verdict("incorrect", 70),
    "q3": verdict("incorrect", 60),
    "q4": UNREADABLE,
}
KIND = {**STRICT, "q2": verdict("correct", 50), "q4": verdict("correct", 50)}


@pytest.fixture
def run(engine: Engine) -> str:
    """A run of six questions, one of them never answered, with two judges."""
    answer(engine)
    judge(engine, verdicts(STRICT), name="strict")
    judge(engine, verdicts(KIND), name="kind", model="n")
    return RUN


def found(engine: Engine, run: str) -> RunVerdicts:
    with engine.connect() as connection:
        return run_verdicts(connection, find_run(connection, run), per_question=True)


def counts(judge: JudgeVerdicts) -> dict[str, int]:
    return {verdict: share.hits for verdict, share in judge.tally.verdicts.items()}


def printed(cotrail: Cotrail, *arguments: object) -> str:
    result = cotrail(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_verdicts_are_counted_over_all_questions(engine: Engine, run: str) -> None:
    said = found(engine, run)
    strict, kind = said.judges
    assert (said.questions, said.answered) == (6, 5)
    assert (strict.label, strict.run, strict.model, strict.state) == ("correct/m", "strict", "m@d1", "finished")
    # q0, q1 correct; q2, q3 incorrect; q4 without a verdict; q5 never answered.
    assert counts(strict) == {"correct": 2, "incorrect": 2}
    assert (strict.tally.questions, strict.tally.unanswered, strict.tally.without, strict.failed) == (5, 1, 1, 1)
    assert strict.tally.mean == pytest.approx(2 / 5)
    assert strict.tally.interval is not None
    assert strict.tally.interval.method == "clopper-pearson"
    assert kind.tally.mean == pytest.approx(4 / 6)
    assert (strict.prompt_tokens, strict.generated_tokens) == (400, 80)
    assert {name: part.mean for name, part in kind.kinds["type"].items()} == {
        "bridge": 1,
        "tunnel": pytest.approx(1 / 3),
    }


def test_two_judges_agreement_equals_a_hand_computation(engine: Engine, run: str) -> None:
    [agreement] = found(engine, run).agreements
    [pair] = agreement.pairs
    # Both judge q0 to q3, and differ on q2: correct 2 and 3 times of 4. By chance 2/4 * 3/4 + 2/4 * 1/4 = 1/2.
    assert (pair.same.of, pair.same.hits, pair.same.value) == (4, 3, 0.75)
    assert pair.kappa.value == pytest.approx((3 / 4 - 1 / 2) / (1 - 1 / 2))
    # Of 8 values 5 are correct and 3 aren't; 2 pairs of values disagree: alpha = 1 - 7 * 2 / (2 * 5 * 3).
    assert agreement.alpha == pytest.approx(1 - 7 * 2 / (2 * 5 * 3))
    assert agreement.unanimous == 3


def test_scores_of_judges_are_like_those_of_metrics(engine: Engine, run: str) -> None:
    with engine.connect() as connection:
        scores = {judge.label: values for judge, values in verdict_scores(connection, find_run(connection, run))}
    assert scores == {
        "correct/m": dict(zip(KEYS, (1, 1, 0, 0, None, 0), strict=True)),
        "correct/n": dict(zip(KEYS, (1, 1, 1, 0, 1, 0), strict=True)),
    }


def test_a_second_judge_of_the_same_name_has_a_number_and_a_cancelled_one_is_none(engine: Engine, run: str) -> None:
    judge(engine, verdicts({}), name="again")
    judge(engine, verdicts({}), name="never")
    cancel(engine, "never")
    labels = [each.label for each in found(engine, run).judges]
    assert labels == ["correct/m", "correct/n", "correct/m#2"]
    again = found(engine, run).judges[2]
    assert (again.state, again.open, again.tally.judged, again.tally.without) == ("running", 5, 0, 6)


def test_a_question_shows_what_each_judge_says(engine: Engine, run: str) -> None:
    with engine.connect() as connection:
        record = find_run(connection, run)
        q0, q4, q5 = (verdicts_on(connection, record, key) for key in ("q0", "q4", "q5"))
    assert [(each.judge, each.judgement and each.judgement.verdict) for each in q0] == [
        ("correct/m", "correct"),
        ("correct/n", "correct"),
    ]
    assert q0[0].judgement is not None
    assert q0[0].judgement.confidence == pytest.approx(0.9)
    assert (q4[0].judgement, q4[0].failure) == (None, UNREADABLE)
    assert q5 == ()


def test_of_a_judge_of_the_first_questions_no_later_ones_count(engine: Engine) -> None:
    answer(engine)
    judge(engine, verdicts(STRICT), name="first", keys=KEYS[:3])
    judge(engine, verdicts(STRICT), name="all", model="n")
    first, everything = found(engine, RUN).judges
    # The question that was never answered is the last one, behind those that the first judge was asked about.
    assert (first.tally.questions, first.tally.unanswered, first.tally.without) == (3, 0, 3)
    assert (everything.tally.questions, everything.tally.unanswered) == (5, 1)


def test_a_judged_run_stays_as_it_was(engine: Engine) -> None:
    answer(engine)
    digest = select(runs.c.digest).where(runs.c.id == RUN)
    with engine.connect() as connection:
        before = connection.execute(digest).scalar_one()
    judge(engine, verdicts(STRICT), name="strict")
    with engine.connect() as connection:
        assert connection.execute(digest).scalar_one() == before


def prefer(key: str, action: Judge) -> Said:
    """The first answer of both to q0 and q1, the second one to q2; the one that stands first to q3; else neither."""
    swapped = action.prompt.render().index("other answer") < action.prompt.render().index("one answer")
    first, second = ("second", "first") if swapped else ("first", "second")
    return {"reasoning": "So.", "confidence": 90} | {
        "verdict": {"q0": first, "q1": first, "q2": second, "q3": "first"}.get(key, "tie")
    }


def test_preferences_are_seen_from_both_runs(engine: Engine) -> None:
    answer(engine, text="one answer")
    answer(engine, OTHER, text="other answer")
    judge(engine, prefer, name="which", rubric="preference", of=(RUN, OTHER))
    [ours], [theirs] = found(engine, RUN).judges, found(engine, OTHER).judges
    assert (ours.against, theirs.against) == (OTHER, RUN)
    assert counts(ours) == {"win": 2, "tie": 2, "loss": 1}
    assert counts(theirs) == {"win": 1, "tie": 2, "loss": 2}
    assert ours.tally.mean == pytest.approx(0.6)
    assert theirs.tally.mean == pytest.approx(0.4)
    # The question that neither answered is no one's win.
    assert (ours.tally.questions, ours.tally.unanswered, ours.tally.without) == (5, 0, 1)
    assert ours.consistency is not None
    assert (ours.consistency.hits, ours.consistency.of) == (4, 5)
    with engine.connect() as connection:
        assert not list(verdict_scores(connection, find_run(connection, RUN)))


def go_through(key: str, action: Judge) -> Said:
    """Three claims of each answer: one supported, one without a paragraph, one contradicted for q0 alone."""
    shown = action.prompt.render()
    if "<claim-" not in shown:
        return {"claims": ["It is a bridge.", "It is old.", f"It is {key}."] if key != "q4" else []}
    if "It is a bridge." in shown:
        return {"reasoning": "Said.", "cited": [1, 2], "verdict": "supported"}
    if "It is q0." in shown:
        return {"reasoning": "Denied.", "cited": [2], "verdict": "contradicted"}
    return {"reasoning": "No word of it.", "cited": [], "verdict": "supported" if "old" in shown else "unsupported"}


def test_claims_are_counted(engine: Engine, cotrail: Cotrail) -> None:
    answer(engine)
    judge(engine, go_through, name="faith", rubric="faithful")
    [faith] = found(engine, RUN).judges
    assert counts(faith) == {"faithful": 0, "partly": 3, "unfaithful": 0, "contradicted": 1, "no claims": 1}
    assert faith.claims is not None
    assert (faith.claims.answers, faith.claims.claims, faith.claims.cited) == (5, 12, 5)
    assert (faith.claims.supported, faith.claims.contradicted, faith.claims.unsupported) == (4, 1, 7)
    assert "12 claims: 4 supported by a paragraph that is cited, 1 contradicted, 7 neither" in printed(
        cotrail, "verdicts", RUN
    )


def test_the_command_prints_a_table_and_the_questions(cotrail: Cotrail, run: str) -> None:
    text = printed(cotrail, "verdicts", run, "--questions")
    assert "answers: 5 of 6 questions answered, 2 judges" in text
    assert "correct 2, incorrect 2" in text
    assert "correct/m and correct/n" in text
    assert "Krippendorff's alpha 0.533 over 4 questions" in text
    assert "incorrect (70 % sure)" in text
    assert "UnansweredError: no verdict could be read" in text
    assert "never answered" in text
    assert "`cotrail retry strict --failed` asks again" in text


def test_the_command_prints_json(cotrail: Cotrail, run: str) -> None:
    told = json.loads(printed(cotrail, "verdicts", run, "--json"))
    assert [judge["label"] for judge in told["judges"]] == ["correct/m", "correct/n"]
    assert told["per_question"] == []


def test_of_a_judge_itself_nobody_says_anything(cotrail: Cotrail, run: str) -> None:
    result = cotrail("verdicts", "strict")
    assert result.exit_code != 0
    assert "name the run that it judged, answers" in str(result.exception)


def test_without_a_judge_the_command_says_how_to_have_one(engine: Engine, cotrail: Cotrail) -> None:
    answer(engine)
    assert "cotrail judge answers --model NAME" in printed(cotrail, "verdicts", RUN)


def test_scores_name_the_judges_below_the_metrics(cotrail: Cotrail, run: str) -> None:
    text = printed(cotrail, "score", run)
    assert text.index("answer_em") < text.index("correct/m") < text.index("correct/n")
    assert "correct 2, incorrect 2" in text
    told = json.loads(printed(cotrail, "score", run, "--json"))
    assert [judge["tally"]["mean"] for judge in told["judges"]] == pytest.approx([2 / 5, 4 / 6])
    assert told["metrics"]["answer_em"] is not None
    assert told["verdicts"] is None


def test_scores_of_a_judge_are_the_shares_of_its_verdicts(cotrail: Cotrail, run: str) -> None:
    text = printed(cotrail, "score", "kind")
    assert "answer_em" not in text
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    # Four of the five that it was asked about, with the exact binomial interval.
    assert "80.0 %" in lines["correct"]
    assert "4 of 5" in lines["correct"]
    assert "28.4 to 99.5" in lines["correct"]
    assert "score over 5 answers with a verdict" in lines["mean"]
    told = json.loads(printed(cotrail, "score", "strict", "--json"))
    assert set(told["metrics"].values()) == {None}
    assert told["verdicts"]["tally"]["without"] == 1
    assert told["verdicts"]["tally"]["unanswered"] == 0


def test_a_trace_ends_with_what_judges_say(cotrail: Cotrail, run: str) -> None:
    text = printed(cotrail, "trace", run, "q2")
    assert text.index("Judges") < text.index("incorrect (70 % sure)") < text.index("It is incorrect.")
    assert "correct (50 % sure)" in text
    told = json.loads(printed(cotrail, "trace", run, "q4", "--json"))
    assert told["verdicts"][0]["failure"]["type"] == UNREADABLE.type
    assert told["verdicts"][1]["judgement"]["verdict"] == "correct"
    assert "Judges" not in printed(cotrail, "trace", run, "q5")


def test_exports_hold_the_verdicts(cotrail: Cotrail, run: str, tmp_path: Path) -> None:
    printed(cotrail, "export", run, "--output", tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    said = {row["question_id"]: [each["judge"] for each in row["verdicts"]] for row in rows}
    assert said == {key: ["correct/m", "correct/n"] if key != "q5" else [] for key in KEYS}
    assert rows[2]["verdicts"][0]["judgement"]["reasoning"] == "It is incorrect."


def test_the_report_shows_verdicts_in_its_summary_and_at_each_question(
    cotrail: Cotrail, run: str, tmp_path: Path
) -> None:
    printed(cotrail, "report", run, "--html", tmp_path / "run.html")
    text = Page((tmp_path / "run.html").read_text()).text
    assert "correct 2, incorrect 2" in text
    assert "Krippendorff's alpha 0.533" in text
    assert "incorrect (70 % sure)" in text
    assert "It is incorrect." in text


def test_the_report_of_a_judge_shows_its_verdicts(cotrail: Cotrail, run: str, tmp_path: Path) -> None:
    printed(cotrail, "report", "kind", "--html", tmp_path / "kind.html")
    text = Page((tmp_path / "kind.html").read_text()).text
    assert "This run judges answers of others" in text
    assert "correct 4, incorrect 1" in text


def test_judges_are_calibrated_by_labels(cotrail: Cotrail, run: str, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({"id": key, "correct": key in {"q0", "q2"}}) + "\n" for key in KEYS[:4]))
    found = show_calibration(run, labels)
    strict, kind = (each.calibration for each in found.judges)
    assert (found.questions, found.labelled) == (6, 4)
    # Labels: q0, q2 correct. The strict judge says so of q0, q1; the kind one of q0, q1, q2.
    assert (strict.precision.hits, strict.precision.of, strict.recall.hits, strict.recall.of) == (1, 2, 1, 2)
    assert (kind.precision.hits, kind.precision.of, kind.recall.hits, kind.recall.of) == (2, 3, 2, 2)
    assert kind.confidence is not None
    # Of q0 to q3 it is 90, 80, 50, 60 % sure, and right but for q1.
    assert kind.confidence.error == pytest.approx(0.75 - 0.7)


def test_the_judge_command_compares_the_judges_that_there_are(
    cotrail: Cotrail, engine: Engine, run: str, tmp_path: Path
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,verdict\n" + "".join(f"{key},correct\n" for key in KEYS[:3]))
    text = printed(cotrail, "judge", run, "--calibrate", labels)
    assert "answers: 3 of 6 questions labelled" in text
    assert text.index("correct/m") < text.index("2 of 3") < text.index("correct/n") < text.index("3 of 3")
    told = json.loads(printed(cotrail, "judge", run, "--calibrate", labels, "--json"))
    assert told["judges"][0]["calibration"]["unlabelled"] == 1
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() == 3


def test_labels_are_checked_before_a_judge_begins(
    cotrail: Cotrail, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(engine)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "no"}}')
    (tmp_path / "models.toml").write_text('[models.s]\nengine = "scripted"\npath = "script.json"\n')
    (tmp_path / "labels.jsonl").write_text('{"id": "q0", "verdict": "missing"}')
    result = cotrail("judge", RUN, "--model", "s", "--calibrate", tmp_path / "labels.jsonl")
    assert result.exit_code != 0
    assert "`verdict` can't be 'missing'" in str(result.exception)
    with engine.connect() as connection:
        assert connection.execute(select(runs.c.id)).scalars().all() == [RUN]


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ({"id": "q9", "correct": True}, "the run has no question 'q9'"),
        ({"id": "q0", "verdict": "fine"}, "`verdict` can't be 'fine'"),
    ],
)
@pytest.mark.usefixtures("cotrail")
def test_labels_that_dont_fit_are_refused(run: str, tmp_path: Path, line: dict[str, Any], refusal: str) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text(json.dumps(line))
    with pytest.raises(InputError, match=refusal):
        show_calibration(run, labels)


@pytest.mark.usefixtures("cotrail")
def test_labels_go_to_the_judges_that_know_their_verdicts(engine: Engine, run: str, tmp_path: Path) -> None:
    judge(engine, verdicts({"q0": verdict("not attempted")}), name="graded", rubric="simpleqa")
    labels = tmp_path / "labels.csv"
    labels.write_text("id,verdict\nq0,not attempted\nq1,correct\n")
    found = show_calibration(run, labels)
    assert [each.label for each in found.judges] == ["simpleqa/m"]


@pytest.mark.usefixtures("cotrail")
def test_without_a_judge_nothing_is_calibrated(engine: Engine, tmp_path: Path) -> None:
    answer(engine)
    with pytest.raises(InputError, match="no judge graded"):
        show_calibration(RUN, tmp_path / "labels.jsonl")


def test_a_question_that_was_never_answered_counts_as_the_rubric_says(engine: Engine) -> None:
    answer(engine)
    judge(engine, verdicts(dict.fromkeys(KEYS, verdict("incorrect"))), name="crag", rubric="crag")
    [crag] = found(engine, RUN).judges
    # Five answers are worse than none, and the one that is missing isn't.
    assert crag.tally.unanswered == 1
    assert crag.tally.mean == pytest.approx(-5 / 6)


def test_a_rubric_names_one_of_its_verdicts_for_questions_without_an_answer() -> None:
    with pytest.raises(ValueError, match="`unanswered`: there is no verdict 'lost'"):
        replace(built_in("crag"), unanswered="lost")
