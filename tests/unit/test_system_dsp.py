"""Demonstrate-Search-Predict, held against its paper's multi-hop program and the fusion of its authors' code."""

import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Retrieved
from cotrail.core.system import System
from cotrail.systems.dsp import DSPSettings, completions, dsp, fused, probabilities, step_bounds
from cotrail.systems.parts.majority import Votes
from cotrail.systems.parts.searching import SearchSettings
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {QUESTION.text: (BRENN,), "river of Brenn": (BRENN,), "end of the Vell": (VELL,)}
WORDS = {
    "first_query": "First: {question}",
    "next_query": "Next:\n{context}\nQuestion: {question}",
    "answer": "Last:\n{context}\nQuestion: {question}",
}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}
SMALL: dict[str, Any] = {"queries": 2, "predictions": 3, "search": SearchSettings(count=2)}
RIVER = " which river it has.\nSearch Query: river of Brenn\n\n---\n\nQuestion: x"
END = " Brenn lies on the Vell.\nSearch Query: end of the Vell"
SEA, OTHER = " So.\nAnswer: The Amber Sea\n---", " Hm.\nAnswer: Black Sea"


def opened(question: Question = QUESTION, **settings: Any) -> System:
    return dsp(question, SHOTS, DSPSettings(**(SMALL | settings)))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def searched(done: Ran) -> list[tuple[str, int]]:
    return [(each.query, each.count) for each in done.actions if isinstance(each, Retrieve)]


def test_two_hops_of_sampled_queries_then_a_vote() -> None:
    done = told(RIVER, RIVER, END, " So.", OTHER, SEA, " So.\nAnswer: amber sea.")
    assert done.prompts == [
        *[f"First: {QUESTION.text}"] * 2,
        *[f"Next:\n[1] Brenn | {BRENN.text}\n\nQuestion: {QUESTION.text}"] * 2,
        *[
            "Last:\nBrenn lies on the Vell.\n"
            f"[1] Vell | {VELL.text}\n[2] Brenn | {BRENN.text}\n\nQuestion: {QUESTION.text}"
        ]
        * 3,
    ]
    # A query that was written twice is searched for once, and all find three times as much as is kept.
    first, second = [("river of Brenn", 6), (QUESTION.text, 6)], [("end of the Vell", 6), (QUESTION.text, 6)]
    assert searched(done) == [*first, *second]
    samples = [(each.sample, each.temperature) for each in done.actions if isinstance(each, Reason)]
    assert samples == [(number, 0.7) for number in (0, 1, 0, 1, 0, 1, 2)]
    assert (done.answer.text, done.answer.limit) == ("The Amber Sea", "")
    assert (done.answer.sentences, done.answer.paragraphs) == (("So.",), (BRENN, VELL))
    assert isinstance(done.answer.details, Votes)
    assert [(each.answer, each.votes) for each in done.answer.details.counted] == [
        ("The Amber Sea", 2),
        ("Black Sea", 1),
    ]


def found_in(*results: tuple[tuple[Paragraph, float], ...]) -> tuple[Paragraph, ...]:
    """What the fusion of searches with these results keeps, the first of them by a query that was written twice."""
    part = fused(["a", "a", *(f"b{number}" for number in range(1, len(results))), " "], DSPSettings())
    asked = next(part)
    assert len(getattr(asked, "actions", ())) == len(results)
    hits = (
        tuple(Hit(paragraph=each, rank=rank, score=score) for rank, (each, score) in enumerate(result, start=1))
        for result in results
    )
    with pytest.raises(StopIteration) as stop:
        part.send(tuple(Retrieved(hits=each) for each in hits))
    return stop.value.value  # type: ignore[no-any-return]


def test_fusion_adds_up_the_probabilities_of_a_paragraph_in_each_search() -> None:
    sea = Paragraph(id="3", title="Sea", text="Salt.")
    # Twice 0.5 each, against 0.9 and 0.1.
    high = math.log(9)
    assert found_in(((BRENN, 3.0), (VELL, 3.0)), ((VELL, high), (BRENN, 0.0))) == (VELL, BRENN)
    assert found_in(((BRENN, 3.0), (VELL, 3.0)), ((sea, 700.0),)) == (BRENN, VELL, sea)
    assert found_in((), ((sea, 1.0),)) == (sea,)


@given(st.lists(st.floats(-1e6, 1e6), max_size=8))
def test_probabilities_of_a_search_are_shares(scores: list[float]) -> None:
    hits = [Hit(paragraph=BRENN, rank=rank, score=score) for rank, score in enumerate(scores, start=1)]
    shares = probabilities(hits)
    assert math.isclose(sum(shares), 1.0 if scores else 0.0, abs_tol=1e-9)
    assert all(0 <= each <= 1 for each in shares)


@each_case("text", ["", " \n", "No field.", "Why.\nAnswer:", "Why.\nAnswer: \n"])
def test_a_text_without_its_last_field_is_no_completion(text: str) -> None:
    assert completions([text], "Answer:") == ()


def test_of_two_answers_the_first_line_counts() -> None:
    (read,) = completions([" Why.\nAnswer: a\nAnswer: b"], "Answer:")
    assert (read.rationale, read.value) == ("Why.", "a")


def test_without_a_query_the_question_is_searched_for_and_without_an_answer_there_is_none() -> None:
    done = told("", "x", " \n", "{", *[""] * 3)
    assert searched(done) == [(QUESTION.text, 6)] * 2
    assert done.prompts[-1] == f"Last:\n[1] Brenn | {BRENN.text}\n\nQuestion: {QUESTION.text}"
    assert (done.answer.text, done.answer.sentences) == ("", ())


def test_hops_and_samples_are_settings_and_a_pinned_passage_stands_first() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question, hops=1, queries=1, predictions=1), [RIVER, SEA], FOUND)
    assert done.prompts[-1].startswith(f"Last:\n[1] Pin | Pinned.\n[2] Brenn | {BRENN.text}\n")
    assert done.answer.text == "The Amber Sea"


def test_own_words_lead_the_model_to_the_fields_that_are_read() -> None:
    done = ran(lambda: dsp(QUESTION, {}, DSPSettings(hops=1, queries=1, predictions=1)), [RIVER, SEA], FOUND)
    assert [each.count("\nSearch Query: ") for each in done.prompts] == [3, 0]
    assert [each.count("\nAnswer: ") for each in done.prompts] == [0, 3]


@each_case("after", [0, 2, 4, 6, 8])
def test_a_budget_ends_it_with_one_answer_from_what_was_found(after: int) -> None:
    lines = [RIVER, RIVER, END, END][: {0: 0, 2: 2, 4: 2}.get(after, 4)]
    asked, answer = driven(opened, after, MadeUp(ToldModel([*lines, SEA]), FOUND))  # type: ignore[arg-type]
    assert len(asked) == after + 1
    assert (answer.text, answer.limit) == ("The Amber Sea", "tokens")
    assert isinstance(asked[-1], Reason)
    assert (asked[-1].sample, asked[-1].temperature) == (None, 0.0)


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from([RIVER, END, SEA])), min_size=1, max_size=8))
def test_any_texts_end_within_the_limits(lines: list[str]) -> None:
    settings = DSPSettings(**SMALL)
    world = MadeUp(ToldModel(lines * 8), FOUND)
    asked, answer = driven(lambda: dsp(QUESTION, SHOTS, settings), None, world)  # type: ignore[arg-type]
    for kind, name in ((Reason, "reason"), (Retrieve, "retrieve")):
        bound = sum(each.times for each in step_bounds(QUESTION, settings) if each.kind == name)
        assert sum(isinstance(each, kind) for each in asked) <= bound
    assert not answer.text or any(answer.text in line for line in lines)
