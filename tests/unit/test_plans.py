"""Plans without a store: their digests, what they state of metrics, and departures from them."""

import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.audit.question_sequence import AskedDigests, AskedQuestions, asked_questions
from cotrail.audit.records import Row
from cotrail.audit.run_check import check_plan, digest_in, json_digest, plan_digest
from cotrail.core.binding import Binding
from cotrail.core.budgets import Budget, Budgets
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import CotrailError, InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import ScoredQuestion
from cotrail.evaluation.plans import (
    ComparedRun,
    Plan,
    PlanFile,
    PlannedComparison,
    RunFacts,
    deviations,
    planned_metrics,
    read_plan,
    read_plan_file,
    remarks,
    reporting,
    unplanned,
)
from tests.cases import each_case

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
GOLD = st.builds(GoldParagraph, title=TEXTS, text=TEXTS, id=TEXTS, grade=st.integers(1, 4))
QUESTIONS = st.lists(
    st.builds(
        Question,
        id=TEXTS,
        text=TEXTS,
        answers=st.lists(TEXTS, max_size=3).map(tuple),
        gold=st.lists(GOLD, max_size=3).map(tuple),
        pinned=st.none() | GOLD,
    ),
    max_size=5,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)

ASKED = asked_questions([Question(id="q1", text="Who?", answers=("Ada",))])
PLAN = Plan(
    system="ircot",
    system_version=1,
    settings="0" * 64,
    demonstrations={"cot": "1" * 64},
    binding=Binding(model="m@1", profile="fast", temperature=0, seed=0, corpora={"mine": "r1"}),
    dataset="jsonl",
    questions=ASKED,
    limit=None,
    budgets=Budgets(),
    repeat=None,
    until=None,
    metrics=("answer_f1", "answer_em"),
    primary="answer_f1",
    comparison=None,
    hypothesis="",
    experiment=None,
    cell=None,
    origin=None,
    forked_at=None,
)


def as_postgresql_keeps(value: Any) -> Any:
    """The value as JSONB has it: keys sorted by length, and numbers as decimals without an exponent."""
    match value:
        case dict():
            keys = sorted(value, key=lambda key: (len(key.encode()), key))
            pairs = (f"{json.dumps(key, ensure_ascii=False)}: {as_postgresql_keeps(value[key])}" for key in keys)
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(as_postgresql_keeps, value))}]"
        case float():
            text = format(Decimal(msgspec.json.encode(value).decode()), "f")
            return text.removeprefix("-") if not value else text
    return json.dumps(value, ensure_ascii=False)


@given(VALUES)
def test_a_digest_is_the_same_before_and_after_postgresql_kept_the_value(value: Any) -> None:
    assert json_digest(msgspec.json.decode(as_postgresql_keeps(value))) == json_digest(value)


@given(QUESTIONS)
def test_the_digests_over_questions_are_those_over_their_rows(questions: list[Question]) -> None:
    digests = AskedDigests()
    for question in questions:
        row = {name: as_postgresql_keeps(msgspec.to_builtins(getattr(question, name))) for name in ("answers", "gold")}
        pinned = None if question.pinned is None else as_postgresql_keeps(msgspec.to_builtins(question.pinned))
        digests.add_row({"key": question.id, "text": question.text, "pinned": pinned, **row})
    assert digests.end() == asked_questions(questions)


@given(QUESTIONS, st.data())
def test_another_order_or_another_part_of_any_question_has_another_digest(
    questions: list[Question], data: st.DataObject
) -> None:
    before = asked_questions(questions)
    order = data.draw(st.permutations(questions))
    assert (asked_questions(order).asked == before.asked) == (
        [(each.id, each.text, each.pinned) for each in order]
        == [(each.id, each.text, each.pinned) for each in questions]
    )
    if not questions:
        return
    place = data.draw(st.integers(0, len(questions) - 1))
    changed = list(questions)
    changed[place] = replace(changed[place], answers=(*changed[place].answers, "one more"))
    after = asked_questions(changed)
    assert (after.asked, after.gold) == (before.asked, before.gold)
    assert after.answers != before.answers


def test_supporting_sentences_change_no_digest_so_that_runs_from_before_them_have_the_same_questions() -> None:
    gold = (GoldParagraph(title="T", text="One. Two."),)
    question = Question(id="q1", text="Who?", gold=gold)
    named = replace(question, gold=(replace(gold[0], facts=("Two.",)),))
    assert asked_questions([named]) == asked_questions([question])


def test_the_digests_are_those_of_json_lines_that_anyone_can_write() -> None:
    gold = (GoldParagraph(title="Vell", text="A river.", id="p1"),)
    asked = asked_questions([Question(id="é", text="Who?", answers=("Ada", "A."), gold=gold)])
    for digest, line in (
        (asked.asked, '["é","Who?",null]\n'),
        (asked.answers, '["é",["Ada","A."]]\n'),
        (asked.gold, '["é",[{"id":"p1","text":"A river.","title":"Vell"}]]\n'),
    ):
        assert digest == sha256(line.encode()).hexdigest()


def test_a_column_that_is_no_json_has_a_digest_too() -> None:
    digests = AskedDigests()
    digests.add_row({"key": "q", "text": "Who?", "pinned": None, "answers": "[", "gold": "[]"})
    assert digests.end().answers == sha256(b'["q","["]\n').hexdigest()


def test_a_plan_is_read_back_from_what_is_sealed_and_has_the_same_digest() -> None:
    compared = PlannedComparison(others=("run-a",), metric="answer_f1", smallest_difference=0.05)
    plan = replace(PLAN, comparison=compared, budgets=Budgets(run=Budget(money=5.0)))
    sealed = msgspec.json.decode(as_postgresql_keeps(msgspec.to_builtins(plan)))
    assert read_plan({"plan": sealed}) == plan
    assert plan_digest(sealed) == plan.digest
    assert read_plan({}) is None
    with pytest.raises(CotrailError, match="audit verify"):
        read_plan({"plan": {**sealed, "metrics": 3}})


@each_case("name", Plan.__struct_fields__)
def test_the_digest_covers_every_part(name: str) -> None:
    sealed = msgspec.to_builtins(PLAN)
    assert plan_digest(sealed | {name: "another"}) != PLAN.digest


DEEP = "[" * 900 + "]" * 900


@each_case("forged", ['"a plan"', "[]", "{}", '{"questions": 3}', f'{{"questions": {DEEP}}}', "7"])
def test_a_plan_that_was_made_unreadable_is_a_finding(forged: str) -> None:
    run: Row = {"id": "r", "provenance": f'{{"plan": {forged}}}'}
    digest = digest_in(run)
    assert digest is None or digest.startswith("sha256:")
    findings = check_plan(run, PLAN.binding, ASKED)
    assert findings
    assert {each.table for each in findings} <= {"runs", "questions"}


def test_provenance_that_is_no_json_has_no_plan() -> None:
    assert digest_in({"provenance": "{"}) is None
    assert [each.column for each in check_plan({"id": "r", "provenance": "{"}, PLAN.binding, ASKED)] == ["provenance"]


def test_a_question_s_columns_may_be_nested_deeper_than_can_be_read() -> None:
    digests = AskedDigests()
    digests.add_row({"key": "q", "text": "Who?", "pinned": DEEP, "answers": "[" * 10**5, "gold": DEEP * 9})
    assert digests.end().count == 1


ANSWERED = ScoredQuestion(
    scoring=scoring_of("hotpotqa"),
    answer=None,
    answers=("Ada",),
    collected=(),
    gold=(GoldParagraph(title="Vell", text="A river."),),
)


def test_every_metric_of_the_dataset_can_be_planned_before_anything_is_answered() -> None:
    """A metric that has a value once a question is answered has one before."""
    found = Paragraph(id="p", title="Vell", text="A river.")
    for name, metric in METRICS.items():
        for scoring in map(scoring_of, ("hotpotqa", "eli5", "iirc", "strategyqa")):
            asked = msgspec.structs.replace(ANSWERED, scoring=scoring)
            answered = msgspec.structs.replace(asked, answer="Ada", collected=(found,))
            assert (metric.value(asked) is None) == (metric.value(answered) is None), name


def test_the_main_metrics_are_those_that_the_questions_publish_something_for() -> None:
    both = planned_metrics(PlanFile(), [ANSWERED])
    assert both.metrics == ("answer_em", "answer_f1", "paragraph_recall", "cover_em", "paragraphs_collected")
    assert both.primary == "answer_em"
    golden = planned_metrics(PlanFile(), [msgspec.structs.replace(ANSWERED, answers=())])
    assert (golden.metrics, golden.primary) == (("paragraph_recall", "paragraphs_collected"), "paragraph_recall")
    bare = planned_metrics(PlanFile(), [msgspec.structs.replace(ANSWERED, answers=(), gold=())])
    assert (bare.metrics, bare.primary) == (("paragraphs_collected",), "")
    with pytest.raises(InputError, match="the plan's comparison needs a metric"):
        planned_metrics(PlanFile(comparison=PlannedComparison(others="a")), [replace(ANSWERED, answers=(), gold=())])


def test_one_run_to_compare_with_or_several_may_be_stated() -> None:
    for written, runs in (("a", ("a",)), (["a", "b"], ("a", "b"))):
        stated = read_plan_file({"comparison": {"with": written}}, "plan.toml")
        comparison = planned_metrics(stated, [ANSWERED]).comparison
        assert comparison == PlannedComparison(others=runs, metric="answer_em")


FACTS = RunFacts(questions=ASKED)


def differing(plan: Plan, facts: RunFacts) -> list[str]:
    return list(deviations(plan, facts))


def test_a_run_as_planned_departs_in_nothing() -> None:
    facts = replace(FACTS, ends={"answer": 3, "limit: sentences": 2}, unended=1, corpora={"mine": "r1"})
    assert differing(PLAN, facts) == []
    assert remarks(PLAN, facts) == ("1 of 1 question hasn't ended",)


@each_case(
    ("facts", "said"),
    [
        ({"questions": replace(ASKED, count=2)}, "the run has 2 questions, and 1 was planned"),
        ({"failed": 1}, "1 of 1 question failed, which counts as a wrong answer"),
        ({"blocked": 1}, "1 of 1 question is blocked"),
        ({"cancelled": 1}, "1 of 1 question was cancelled"),
        ({"cancelled": 1, "unasked": 1}, "1 of 1 question was cancelled, 1 of them before anything was asked"),
        ({"ends": {"limit: run money": 1}}, "a limit that the plan doesn't have ended questions: 1 limit: run money"),
        (
            {"ends": {"until: width(answer_f1) < 0.05": 1}},
            "a limit that the plan doesn't have ended questions: 1 until: width(answer_f1) < 0.05",
        ),
        ({"retried": 2}, "2 questions had failed and were tried again"),
        ({"taken_over": 1}, "1 step of run None was taken over, recorded before this plan was sealed"),
        ({"corpora": {"mine": "r2"}}, "the corpus mine has another revision now, r2: the plan's was r1"),
        ({"compared": (ComparedRun(named="a"),)}, "the run to compare with, a, isn't there"),
        (
            {"compared": (ComparedRun(named="a", run="r", unended=1, same=True),)},
            "the run to compare with, a, still has 1 question to answer",
        ),
        (
            {"compared": (ComparedRun(named="a", run="r"),)},
            "the run to compare with, a, has other questions, answers or gold paragraphs",
        ),
    ],
)
def test_each_departure_is_said_in_words(facts: dict[str, Any], said: str) -> None:
    assert differing(PLAN, replace(FACTS, **facts)) == [said]


def test_a_budget_that_was_raised_departs_from_the_plan() -> None:
    plan = replace(PLAN, budgets=Budgets(question=Budget(steps=9), run=Budget(tokens=5_000)))
    assert differing(plan, replace(FACTS, budgets=plan.budgets)) == []
    raised = Budgets(question=Budget(steps=9), run=Budget(tokens=20_000))
    said = ["the run budget of tokens was raised to 20,000, and 5,000 was planned"]
    assert differing(plan, replace(FACTS, budgets=raised)) == said


@each_case(("part", "words"), [("asked", "texts"), ("answers", "published answers"), ("gold", "gold paragraphs")])
def test_each_part_of_the_questions_is_told_apart(part: str, words: str) -> None:
    changed: AskedQuestions = replace(ASKED, **{part: "f" * 64})
    [said] = differing(PLAN, replace(FACTS, questions=changed))
    assert said.startswith(f"the questions' {words} aren't those that were planned: their SHA-256 is ffffffffffff")


def test_limits_of_the_plan_are_remarked() -> None:
    plan = replace(
        PLAN, until="width(answer_f1) < 0.05", budgets=Budgets(question=Budget(tokens=9), run=Budget(money=5))
    )
    facts = replace(
        FACTS, ends={"limit: run money": 2, "limit: tokens": 1, "until: width(answer_f1) < 0.05": 3, "limit: steps": 4}
    )
    assert differing(plan, facts) == []
    assert remarks(plan, facts) == (
        "a limit of the plan ended questions: 2 limit: run money, 1 limit: tokens, 3 until: width(answer_f1) < 0.05",
    )


def test_scores_are_shown_with_what_was_planned_of_them() -> None:
    assert reporting(None) == ()
    assert reporting(PLAN) == ("planned: answer_f1, answer_em; answer_f1 decides",)
    assert reporting(replace(PLAN, primary="")) == ("planned: answer_f1, answer_em",)


def test_metrics_and_comparisons_that_were_not_planned_are_named_once() -> None:
    assert unplanned(PLAN, ["answer_f1"], []) == ()
    plan = replace(PLAN, comparison=PlannedComparison(others=("a",), metric="answer_f1"))
    assert unplanned(plan, ["answer_f1", "cover_em", "cover_em"], ["a", "b"]) == (
        "the plan doesn't report cover_em",
        "the plan makes no comparison with b",
    )
    assert unplanned(None, ["cover_em"], ["b"]) == ()
