"""DSP under transcripts written by hand."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Finished
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import LimitReached
from cotrail.systems.dsp import DspSettings, dsp, fused
from cotrail.systems.parts.searching import SearchSettings
from tests.replay.driving import MadeUp, live
from tests.told import Ran, ToldModel, ran

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"On which river?": (BRENN,), "Where does the Vell end?": (VELL, BRENN), QUESTION.text: (BRENN,)}
RIVER = " the river.\n\nSearch Query: On which river?\n\nContext: more"
END = " where it ends.\n\nSearch Query: Where does the Vell end?"
AMBER = " It is the Vell.\n\nAnswer: the Amber Sea\n---\n"


def told(*lines: str, **settings: Any) -> Ran:
    small: dict[str, Any] = {"queries": 2, "samples": 3, "search": SearchSettings(count=2)} | settings
    return ran(partial(dsp, QUESTION, {}, DspSettings(**small)), lines, FOUND)


def test_queries_of_a_hop_are_sampled_and_fused_and_the_answers_vote() -> None:
    result = told(RIVER, RIVER, END, " Hm.", AMBER, " x\nAnswer: y", AMBER)
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == [
        *("On which river?", QUESTION.text),
        *("Where does the Vell end?", QUESTION.text),
    ]
    assert {each.count for each in result.actions if isinstance(each, Retrieve)} == {6}
    first, _, second, *_, last = result.prompts
    assert f"Context:\nN/A\n\nQuestion: {QUESTION.text}\n" in first
    assert f"Context:\n[1] Brenn | {BRENN.text}\n\nQuestion: {QUESTION.text}" in second
    assert f"Context:\nwhere it ends.\n[1] Brenn | {BRENN.text}\n[2] Vell | {VELL.text}\n\nQuestion:" in last
    assert (result.answer.text, result.answer.sentences) == ("the Amber Sea", ("It is the Vell.",))
    assert result.answer.paragraphs == (BRENN, VELL)
    drawn = [each for each in result.actions if isinstance(each, Reason)]
    assert [each.sample for each in drawn] == [0, 1, 0, 1, 0, 1, 2]
    assert {each.temperature for each in drawn} == {0.7}


@pytest.mark.parametrize("line", ["", " ", " Hm.", "Search Query:", "Answer:", "Answer:\n---"])
def test_samples_without_a_query_or_an_answer_are_dropped(line: str) -> None:
    result = told(*[line] * 7)
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == [QUESTION.text] * 2
    assert (result.answer.text, result.answer.sentences) == ("", ())


def test_probabilities_in_all_lists_add_up() -> None:
    def found(*scored: tuple[Paragraph, float]) -> Retrieved:
        return Retrieved(hits=tuple(Hit(paragraph=each, rank=1, score=score) for each, score in scored))

    other = Paragraph(id="3", title="x", text="y")
    lists = [found((BRENN, 900.0), (VELL, 899.0)), found((other, 1.0), (VELL, 1.0)), found()]
    assert fused(lists, 2) == (VELL, BRENN)
    assert fused(lists, 9) == (VELL, BRENN, other)


def test_at_a_budgets_end_one_answer_is_asked_for() -> None:
    system = dsp(QUESTION, {}, DspSettings(queries=1))
    together: Any = next(system)
    system.send(tuple(map(MadeUp(ToldModel([RIVER])), together.actions)))  # type: ignore[arg-type]
    last: Any = system.throw(LimitReached("money"))
    with pytest.raises(StopIteration) as ended:
        system.send(tuple(map(MadeUp(ToldModel([AMBER])), last.actions)))  # type: ignore[arg-type]
    assert (ended.value.value.text, ended.value.value.limit) == ("the Amber Sea", "money")


PIECES = st.sampled_from(["Search Query:", "Answer:", "x", "\n", "\n---", " ", "---", "\n\nContext:"])


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=7, max_size=7))
def test_anything_ends(lines: list[str]) -> None:
    _, end = live(dsp(QUESTION, {}, DspSettings(queries=2, samples=3)), MadeUp(ToldModel(lines), FOUND))
    assert isinstance(end, Finished)
