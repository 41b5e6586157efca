"""The judge, by transcripts: what it is asked by each rubric, and what comes of what it says."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from cotrail.core.actions.generate import Judge, Prompted
from cotrail.core.history import Failed
from cotrail.core.questions import JudgedAnswer, Paragraph, Question
from cotrail.systems.judge.rubric import (
    BUILT_IN,
    ClaimVerdict,
    Judgement,
    Rubric,
    built_in,
    judged_text_in,
    verdict_schema,
)
from cotrail.systems.judge.system import JudgeSettings, judge, step_bounds
from tests.cases import each_case
from tests.replay.driving import MadeUp, live
from tests.told import Ran, ToldModel, ran

VELL = Paragraph(id="1", title="Vell", text="The Vell ends in the Amber Sea.")
BRENN = Paragraph(id="2", title="Brenn", text="Brenn lies on the Vell.")
GIVEN = JudgedAnswer(
    run="ircot-1",
    digest="d",
    answer="the Amber Sea",
    sentences=("Brenn lies on the Vell.", "So the answer is: the Amber Sea."),
    paragraphs=(VELL, BRENN),
)
QUESTION = Question(
    id="q", text="On which sea does Brenn's river end?", answers=("Amber Sea", "the Amber"), judged=(GIVEN,)
)
PAIR = replace(QUESTION, judged=(GIVEN, replace(GIVEN, run="direct-1", answer="the Black Sea")))


def said(verdict: str, **more: Any) -> str:
    return json.dumps({"reasoning": "So it is.", "verdict": verdict} | more)


def judged(rubric: str | Rubric, lines: Sequence[str], question: Question = QUESTION, **settings: Any) -> Ran:
    by = built_in(rubric) if isinstance(rubric, str) else rubric
    return ran(lambda: judge(question, {}, JudgeSettings(rubric=by, **settings)), lines)


def shown(done: Ran, step: int = 0) -> str:
    """What the model is shown in a step, without the mark in its tags."""
    marked = marked_prompt(done, step)
    [mark] = set(re.findall(r"<answer-([0-9a-f]{16})> and </answer", marked))
    return marked.replace(f"-{mark}", "")


def marked_prompt(done: Ran, step: int = 0) -> str:
    content: str = json.loads(done.prompts[step])["messages"][0]["content"]
    return content


@each_case(
    ("rubric", "verdict", "score"),
    [
        ("correct", "correct", 1.0),
        ("correct", "incorrect", 0.0),
        ("browsecomp-plus", "incorrect", 0.0),
        ("frames", "correct", 1.0),
        ("simpleqa", "correct", 1.0),
        ("simpleqa", "incorrect", 0.0),
        ("simpleqa", "not attempted", 0.0),
        ("crag", "correct", 1.0),
        ("crag", "missing", 0.0),
        ("crag", "incorrect", -1.0),
    ],
)
def test_an_answer_gets_one_verdict_with_its_score(rubric: str, verdict: str, score: float) -> None:
    extracted = "Amber Sea" if rubric == "browsecomp-plus" else ""
    more = {"extracted": extracted} if extracted else {}
    done = judged(rubric, [said(verdict, confidence=85, **more)])
    assert done.answer.text == verdict
    assert done.answer.details == Judgement(
        rubric=rubric, verdict=verdict, score=score, confidence=0.85, reasoning="So it is.", extracted=extracted
    )
    assert len(done.asked(Judge)) == len(done.actions) == 1


@each_case("rubric", ["correct", "browsecomp-plus", "frames", "simpleqa", "crag"])
def test_the_judge_is_shown_question_answer_and_published_answers(rubric: str) -> None:
    confident = {"extracted": "x"} if rubric == "browsecomp-plus" else {}
    text = shown(judged(rubric, [said("correct", confidence=0, **confident)]))
    assert f"<question>\n{QUESTION.text}\n</question>" in text
    assert "<answers>\nAmber Sea\nthe Amber\n</answers>" in text
    assert "<answer>\nthe Amber Sea\n</answer>" in text
    assert '"verdict": one of "correct", ' in text
    assert "{" not in text


def test_what_others_wrote_is_quoted_and_never_left_out() -> None:
    """An answer that holds a control token mustn't end the turn that it is shown in."""
    done = judged("correct", [said("correct", confidence=100)])
    [action] = done.asked(Judge)
    assert isinstance(action, Judge)
    shows = [piece for piece in action.prompt.pieces if getattr(piece, "paragraph", None)]
    assert [piece.text for piece in shows] == ["Amber Sea\nthe Amber", "the Amber Sea"]
    assert action.prompt.yielding == ()


TWICE = '{"reasoning": "", "verdict": "correct", "verdict": "incorrect", "confidence": 9}'
BOTH = f"{said('correct', confidence=9)} or {said('incorrect', confidence=9)}"
QUOTING = '{"reasoning": "It says {"verdict": "correct"}.", "verdict": "incorrect", "confidence": 9}'


@each_case(
    ("text", "confidence", "dropped"),
    [
        (said("correct", confidence=90), 0.9, UNSET),
        (said("correct", confidence=150), None, ("confidence",)),
        (said("correct", confidence="90"), None, ("confidence",)),
        (said("correct", confidence=None), None, ("confidence",)),
        (said("correct"), None, ("confidence",)),
        (said("Correct", confidence=90), 0.9, UNSET),
        (said("CORRECT.", confidence=90), 0.9, UNSET),
        (said("correct", confidence=90, score=1), 0.9, UNSET),
        (json.dumps({"verdict": "correct"}), None, ("reasoning", "confidence")),
        (json.dumps({"verdict": "correct", "confidence": 90, "reasoning": ["a", "b"]}), 0.9, ("reasoning",)),
        ('{"reasoning": "", "verdict": "correct", "confidence": NaN}', None, ("confidence",)),
        (f"So {{it}} is:\n```json\n{said('correct', confidence=-1)}\n```\nThat's all.", None, ("confidence",)),
        (f"{said('correct')} {said('Correct', confidence='?')}", None, ("confidence",)),
    ],
)
def test_a_verdict_is_kept_where_only_what_stands_beside_it_cannot_be_used(
    text: str, confidence: float | None, dropped: tuple[str, ...] | UnsetType
) -> None:
    details = judged("correct", [text]).answer.details
    assert isinstance(details, Judgement)
    assert (details.verdict, details.score, details.confidence, details.dropped) == ("correct", 1, confidence, dropped)
    assert ("dropped" in msgspec.to_builtins(details)) == (dropped is not UNSET)


def test_verdicts_on_claims_and_in_both_orders_are_kept_alike() -> None:
    done = judged("faithful", [json.dumps({"claims": ["One."]}), said("supported", cited="1")])
    assert isinstance(done.answer.details, Judgement)
    assert (done.answer.details.claims[0].verdict, done.answer.details.dropped) == ("supported", ("cited",))
    done = judged("preference", [said("first", confidence=101), said("Second", confidence=50)], PAIR)
    assert isinstance(done.answer.details, Judgement)
    assert (done.answer.details.verdict, done.answer.details.confidence) == ("first", 0.5)
    assert done.answer.details.dropped == ("confidence",)


def test_a_text_that_no_schema_follows_fails_the_question() -> None:
    for text in (
        "It is correct.",
        said("perhaps", confidence=3),
        said("correct", verdicts=1)[:-20],
        TWICE,
        BOTH,
        QUOTING,
        "",
    ):
        settings = JudgeSettings()
        trace, end = live(judge(QUESTION, {}, settings), MadeUp(ToldModel([text])))
        assert isinstance(end, Failed)
        assert end.failure.type == "UnansweredError"
        assert len(trace) == 1


ORDERS = {
    ("first", "second"): ("first", 1.0, True),
    ("second", "first"): ("second", 0.0, True),
    ("tie", "tie"): ("tie", 0.5, True),
    ("first", "first"): ("tie", 0.5, False),
    ("second", "second"): ("tie", 0.5, False),
    ("tie", "first"): ("tie", 0.5, False),
    ("second", "tie"): ("tie", 0.5, False),
}


@each_case(("said_in_orders", "expected"), ORDERS.items())
def test_a_preference_counts_where_both_orders_agree(
    said_in_orders: tuple[str, str], expected: tuple[str, float, bool]
) -> None:
    lines = [said(verdict, confidence=sure) for verdict, sure in zip(said_in_orders, (80, 60), strict=True)]
    done = judged("preference", lines, PAIR)
    details = done.answer.details
    assert isinstance(details, Judgement)
    assert (details.verdict, details.score, details.consistent) == expected
    assert done.answer.text == details.verdict
    assert details.confidence == (0.7 if details.consistent else None)


def test_both_orders_are_asked_together() -> None:
    done = judged("preference", [said("tie", confidence=1)] * 2, PAIR)
    assert "<first>\nthe Amber Sea\n</first>" in shown(done, 0)
    assert "<second>\nthe Black Sea\n</second>" in shown(done, 0)
    assert "<first>\nthe Black Sea\n</first>" in shown(done, 1)
    assert "<second>\nthe Amber Sea\n</second>" in shown(done, 1)
    assert "Amber Sea\nthe Amber" not in shown(done, 0), "a preference goes by no published answer"


CLAIMS = ("Brenn lies on the Vell.", "The Vell ends in the Amber Sea.")


def on_claims(*verdicts: tuple[str, tuple[int, ...]]) -> list[str]:
    listed = json.dumps({"claims": [f"Claim {n}." for n, _ in enumerate(verdicts)]})
    return [listed, *(said(verdict, cited=list(cited)) for verdict, cited in verdicts)]


YES, UNCITED, NO, AGAINST = ("supported", (1,)), ("supported", ()), ("unsupported", ()), ("contradicted", (2,))


@each_case(
    ("verdicts", "verdict", "score"),
    [
        ((YES, YES), "faithful", 1.0),
        ((YES, NO, NO), "partly", 0.333333),
        ((YES, UNCITED), "partly", 0.5),
        ((NO,), "unfaithful", 0.0),
        ((UNCITED,), "unfaithful", 0.0),
        ((YES, YES, YES, AGAINST), "contradicted", 0.75),
        ((), "no claims", 0.0),
    ],
)
def test_faithfulness_is_the_share_of_claims_with_a_paragraph_that_supports_them(
    verdicts: tuple[tuple[str, tuple[int, ...]], ...], verdict: str, score: float
) -> None:
    done = judged("faithful", on_claims(*verdicts))
    details = done.answer.details
    assert isinstance(details, Judgement)
    assert (details.verdict, details.score, done.answer.text, done.answer.limit) == (verdict, score, verdict, "")
    assert [(each.verdict, each.cited) for each in details.claims] == list(verdicts)


def test_each_claim_is_judged_by_itself_over_numbered_paragraphs() -> None:
    lines = [json.dumps({"claims": [*CLAIMS, " ", CLAIMS[0]]}), *[said("supported", cited=[2, 2, 1, 9, 0, -1])] * 2]
    done = judged("faithful", lines)
    listing, first, second = (shown(done, step) for step in range(3))
    assert f"<sentences>\n{GIVEN.sentences[0]}\n{GIVEN.sentences[1]}\n</sentences>" in listing
    assert "<answer>\nthe Amber Sea\n</answer>" in listing
    for text, claim in ((first, CLAIMS[0]), (second, CLAIMS[1])):
        assert "<paragraph number=1>\nVell\nThe Vell ends in the Amber Sea.\n</paragraph>" in text
        assert "<paragraph number=2>\nBrenn\nBrenn lies on the Vell.\n</paragraph>" in text
        assert f"<claim>\n{claim}\n</claim>" in text
    assert isinstance(done.answer.details, Judgement)
    assert done.answer.details.claims == tuple(
        ClaimVerdict(claim=claim, verdict="supported", cited=(1, 2)) for claim in CLAIMS
    )


def test_only_so_many_claims_are_judged_and_the_limit_is_recorded() -> None:
    [listed, one, *_] = on_claims(YES, YES, YES)
    done = judged("faithful", [listed, one], max_claims=1)
    assert isinstance(done.answer.details, Judgement)
    assert (len(done.answer.details.claims), done.answer.limit) == (1, "claims")


def test_a_claim_whose_verdict_cannot_be_read_fails_the_question() -> None:
    [listed, one, _] = on_claims(YES, YES)
    settings = JudgeSettings(rubric=built_in("faithful"))
    _, end = live(judge(QUESTION, {}, settings), MadeUp(ToldModel([listed, one, "Yes."])))
    assert isinstance(end, Failed)


@each_case("rubric", BUILT_IN)
def test_no_judge_takes_more_than_its_bounds(rubric: str) -> None:
    settings = JudgeSettings(rubric=built_in(rubric), max_claims=3)
    question = PAIR if rubric == "preference" else QUESTION
    lines = {
        "preference": [said("tie", confidence=1)] * 2,
        "faithful": on_claims(YES, YES, YES),
        "browsecomp-plus": [said("correct", confidence=1, extracted="")],
    }.get(rubric, [said("correct", confidence=1)])
    done = judged(rubric, lines, question, max_claims=3)
    bounds = step_bounds(question, settings)
    assert {bound.kind for bound in bounds} == {"judge"}
    assert len(done.actions) == sum(bound.times for bound in bounds)
    longest = max(bound.words for bound in bounds) + len(question.text.split())
    prompts = [action.prompt for action in done.actions if isinstance(action, Prompted)]
    assert all(len(prompt.turns[0].text.split()) <= longest for prompt in prompts)


VERDICTS = st.sampled_from([YES, UNCITED, NO, AGAINST])


@given(st.lists(VERDICTS, max_size=6))
def test_the_score_is_between_0_and_1_and_1_only_where_all_is_supported(
    verdicts: list[tuple[str, tuple[int, ...]]],
) -> None:
    details = judged("faithful", on_claims(*verdicts)).answer.details
    assert isinstance(details, Judgement)
    assert 0 <= details.score <= 1
    assert (details.score == 1) == (details.verdict == "faithful") == (bool(verdicts) and set(verdicts) == {YES})


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers(0, 100))
def test_whatever_a_judge_says_in_its_form_can_be_recorded(reasoning: str, confidence: int) -> None:
    text = json.dumps({"reasoning": reasoning, "verdict": "correct", "confidence": confidence})
    [action] = judged("correct", [said("correct", confidence=1)]).asked(Judge)
    assert isinstance(action, Judge)
    fitted, problem = action.form.fit(text)
    assert problem == ""
    assert judged_text_in(fitted).reasoning == reasoning
    assert msgspec.json.decode(msgspec.json.encode(judged_text_in(fitted))) is not None


def test_the_reasons_come_before_the_verdict() -> None:
    """A model that is held to the schema writes its keys in their order."""
    for name in BUILT_IN:
        keys = list(json.loads(verdict_schema(built_in(name)))["properties"])
        assert keys.index("reasoning") < keys.index("verdict")
