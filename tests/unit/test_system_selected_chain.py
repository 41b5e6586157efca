"""The selected chain: which sentences it takes, where it searches next, and which pieces may be the answer."""

from typing import Any

from cotrail.core.actions.generate import Read
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.selected_chain import SelectedChainSettings, candidates, named, selected_chain, spans
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="Where was the builder of Brenn Bridge born?")
BRIDGE = Paragraph(id="1", title="Brenn Bridge", text="It was built by Ada Vell.")
VELL = Paragraph(id="2", title="Ada Vell", text="Ada Vell was born in Port of Tarn in 1851.")
OTHER = Paragraph(id="3", title="Tessen", text="Tessen is a town.")
FOUND = {QUESTION.text: (BRIDGE,), BRIDGE.text: (OTHER, BRIDGE, VELL)}
SHOTS: Shots = {AnswerForm.DIRECT: Demonstrations()}


def opened(**settings: Any) -> System:
    return selected_chain(QUESTION, SHOTS, SelectedChainSettings(**settings))


def test_it_searches_with_the_selected_sentence_and_reads_where_that_leads() -> None:
    done = ran(opened, ["Port of Tarn"], FOUND)
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [QUESTION.text, BRIDGE.text]
    [read] = [each for each in done.actions if isinstance(each, Read)]
    assert read.choices == ("Port of Tarn\n",)
    shown = [f"Wikipedia Title: {each.title}\n{each.text}\n\n" for each in (BRIDGE, VELL)]
    assert done.prompts == [f"{''.join(shown)}Q: {QUESTION.text}\nA:"]
    assert (done.answer.text, done.answer.sentences) == ("Port of Tarn", (BRIDGE.text, VELL.text))
    assert done.answer.paragraphs == (BRIDGE, OTHER, VELL)


def test_without_anything_found_there_is_no_answer() -> None:
    done = ran(opened, [], {QUESTION.text: ()})
    assert (done.answer.text, len(done.actions)) == ("", 1)


def test_a_budget_ends_it_with_a_last_reading() -> None:
    world = MadeUp(ToldModel(["Port of Tarn"]), FOUND)
    asked, answer = driven(opened, 2, world)  # type: ignore[arg-type]
    assert (len(asked), answer.limit, answer.paragraphs) == (3, "tokens", (BRIDGE, OTHER, VELL))


def test_titles_of_the_question_lead_nowhere_new() -> None:
    assert named((OTHER, BRIDGE, VELL), QUESTION.text, f"Brenn Bridge: {BRIDGE.text}") == (VELL,)
    assert named((OTHER, BRIDGE), QUESTION.text, "Brenn Bridge is old.") == (OTHER, BRIDGE)


def test_the_first_sentence_brings_a_name_if_any_does() -> None:
    bridge = Paragraph(id="4", title="Brenn Bridge", text="Gales shook it. Ada Vell built it in Tessen.")
    assert [each.text for each in candidates(QUESTION.text, (), (bridge,))] == ["Ada Vell built it in Tessen."]
    assert len(candidates(QUESTION.text, (OTHER,), (bridge,))) == 2


@each_case(
    ("text", "numbers", "pieces"),
    [
        ("Ada (1829-1897) sang.", True, ["Ada", "1829", "1897", "sang"]),
        ("Ada (1829-1897) sang.", False, ["Ada", "sang"]),
        ("It is 1,412 metres tall.", True, ["1,412", "1,412 metres", "metres"]),
        ("He left the University of Tarn.", True, ["University of Tarn", "the University of Tarn"]),
    ],
)
def test_pieces_cut_no_name_and_cross_no_punctuation(text: str, numbers: bool, pieces: list[str]) -> None:  # noqa: FBT001
    assert sorted(spans(text, "left tall", 2, numbers=numbers)) == sorted(pieces)
