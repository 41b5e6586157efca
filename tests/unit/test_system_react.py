"""ReAct and its back-offs, held against section 3 of the paper and the authors' environment and loop."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.prompts import Shown
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Action, System
from cotrail.data.demonstrations.self_written import read_prompts
from cotrail.systems.parts.majority import Votes
from cotrail.systems.react import (
    ALL_WORDS,
    OWN,
    SPEC,
    SPECS,
    BackOffSettings,
    Page,
    PageSettings,
    ReActSettings,
    back_off_bounds,
    looked_up,
    parsed,
    react,
    react_self_consistency,
    self_consistency_react,
    sentences_of,
    step_bounds,
)
from tests.cases import each_case
from tests.replay.driving import MadeUp, found_paragraphs, live
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell. It is old")
HISTORY = Paragraph(id="2", title="Brenn", text="Ada founded it. Bo left. Ada died.")
VELL = Paragraph(id="3", title="Vell", text="One. Two. Three. Four. Five. Six, in the Amber Sea")
FOUND: dict[str, tuple[Paragraph, ...]] = {
    "Brenn": (BRENN, HISTORY),
    "Vell": (VELL,),
    "brenn": (),
    "Nowhere": (),
    "Nothing": (),
}
SHOTS: Shots = {
    AnswerForm.PROMPT: whole_prompts(
        {
            "act": "{examples}\nQuestion: {question}",
            "examples": "Examples.",
            "chain": "{chain_examples}\nQuestion: {question}\nThought:",
            "chain_examples": "Chains.",
        }
    )
}
FIRST = f"Examples.\nQuestion: {QUESTION.text}\n"
BRENN_BEGINS = "Brenn lies on the Vell. It is old. Ada founded it. Bo left. Ada died.."


SIMILAR = {"brenn": (VELL, BRENN, HISTORY), "Nowhere": (VELL, BRENN)}


class Pages(MadeUp):
    """A world whose titles are searched for apart from its pages."""

    def __call__(self, action: Action) -> Any:
        if isinstance(action, Retrieve):
            return found_paragraphs(*SIMILAR.get(action.query, ()))
        if isinstance(action, Open):
            return found_paragraphs(*self.found.get(action.title, ()))
        return super().__call__(action)


def opened(**settings: Any) -> System:
    return react(QUESTION, SHOTS, ReActSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND, Pages)


def step(number: int, action: str, thought: str = "Hm.") -> str:
    return f" {thought}\nAction {number}: {action}"


def observations(done: Ran) -> list[str]:
    """What the last prompt shows of each step."""
    return [part.partition("\nThought ")[0] for part in done.prompts[-1].split("\nObservation ")[1:]]


def test_thoughts_actions_and_observations_take_turns() -> None:
    done = told(
        f"{step(1, 'Search[Brenn]', 'Brenn first.')}\nObservation 1: made up",
        step(2, "Lookup[ada]"),
        step(3, "Lookup[ada]"),
        step(4, "Lookup[ada]"),
        step(5, "Finish[the Amber Sea]", "I know."),
    )
    assert done.prompts[0] == f"{FIRST}Thought 1:"
    assert done.prompts[-1] == (
        f"{FIRST}Thought 1: Brenn first.\nAction 1: Search[Brenn]\nObservation 1: {BRENN_BEGINS}\n"
        "Thought 2: Hm.\nAction 2: Lookup[ada]\nObservation 2: (Result 1 / 2) Ada founded it.\n"
        "Thought 3: Hm.\nAction 3: Lookup[ada]\nObservation 3: (Result 2 / 2) Ada died..\n"
        "Thought 4: Hm.\nAction 4: Lookup[ada]\nObservation 4: No more results.\n\n"
        "Thought 5:"
    )
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences == ("Brenn first.", "Hm.", "Hm.", "Hm.", "I know.")
    assert done.answer.paragraphs == (BRENN, HISTORY)
    assert all(isinstance(each, Reason) and each.max_tokens == 100 for each in done.asked(Reason))


def test_a_page_is_searched_for_by_its_title_in_whatever_case_and_else_similar_titles_are_told() -> None:
    done = told(step(1, "search[brenn]"), step(2, "search[Nowhere]"), step(3, "lookup[Bo]"), step(4, "finish[x]"))
    nowhere = "2: Could not find Nowhere. Similar: ['Vell', 'Brenn']."
    # The page before stays open.
    assert observations(done) == [f"1: {BRENN_BEGINS}", nowhere, "3: (Result 1 / 1) Bo left."]
    steps = [each for each in done.actions if not isinstance(each, Reason)]
    titles = Retrieve(query="brenn", count=5, field="title")
    assert steps[:3] == [Open(title="brenn"), titles, Open(title="Brenn")]


def test_another_search_or_keyword_begins_a_look_up_anew() -> None:
    done = told(
        step(1, "Search[Brenn]"),
        step(2, "Lookup[Ada]"),
        step(3, "Lookup[Bo]"),
        step(4, "Lookup[Ada]"),
        step(5, "Search[Vell]"),
        step(6, "Lookup[Ada]"),
        step(7, "Finish[x]"),
    )
    said = observations(done)
    assert said[1] == said[3].replace("4:", "2:") == "2: (Result 1 / 2) Ada founded it."
    assert said[4:] == ["5: One. Two. Three. Four. Five.", "6: No more results.\n"]


@each_case(
    ("action", "observation"),
    [
        ("think[So far, so good.]", "Nice thought."),
        ("Lookup[Ada]", "No more results.\n"),
        ("Search[]", "Could not find . Similar: []."),
        ("Search[Nothing]", "Could not find Nothing. Similar: []."),
        ("Open[Brenn]", "Invalid action: open[Brenn]"),
        ("SEARCH[Brenn]", "Invalid action: sEARCH[Brenn]"),
        ("Search[Brenn] and more", "Invalid action: search[Brenn] and more"),
        ("Finish[Ada", "Invalid action: finish[Ada"),
        ('{"action": "se', 'Invalid action: {"action": "se'),
    ],
)
def test_what_an_action_shows(action: str, observation: str) -> None:
    done = told(step(1, action), step(2, "Finish[x]"))
    assert observations(done) == [f"1: {observation}"]


@each_case(
    ("said", "thought"),
    [
        (" I think.\nAnd more.", "I think."),
        ("", ""),
        (" \n", ""),
        (" A.\nAction 1: finish[a]\nAction 1: finish[b]", "A."),
        ("Action 1: Search[Brenn]", "Action 1: Search[Brenn]"),
    ],
)
def test_a_text_without_a_single_action_is_asked_for_the_action_alone(said: str, thought: str) -> None:
    done = told(said, " Finish[Ada]\nObservation 1: x")
    assert done.prompts[1] == f"{FIRST}Thought 1: {thought}\nAction 1:"
    assert (done.answer.text, done.answer.sentences) == ("Ada", (thought,))


def test_an_action_that_stays_empty_is_invalid() -> None:
    done = told("Hm.", " \n", step(2, "Finish[x]"))
    assert observations(done) == ["1: Invalid action: "]


@each_case("steps", [1, 7])
def test_after_the_most_steps_there_is_no_answer(steps: int) -> None:
    done = told(*(step(number, "Search[Brenn]") for number in range(1, steps + 1)), steps=steps)
    assert (done.answer.text, done.answer.limit) == ("", "steps")
    assert (len(done.answer.sentences), done.answer.paragraphs) == (steps, (BRENN, HISTORY))


def test_the_first_observations_go_where_not_all_fit() -> None:
    lines = [step(1, "search[Brenn]"), step(2, "lookup[Ada]"), step(3, "finish[Ada]")]
    trace, _ = live(opened(), Pages(ToldModel(lines), FOUND))
    last = [action for action, _ in trace if isinstance(action, Reason)][-1].prompt
    assert "Ada founded it" in last.keep(0, 1).render()
    assert "Brenn lies" not in last.keep(0, 1).render()


def test_what_a_page_shows_is_told_from_the_environments_words_and_cut() -> None:
    settings = PageSettings(sentences=2, observation_words=3)
    done = told(step(1, "search[Brenn]"), step(2, "finish[Ada]"), pages=settings)
    last = done.asked(Reason)[-1]
    assert isinstance(last, Reason)
    (shown,) = [piece for piece in last.prompt.pieces if isinstance(piece, Shown)]
    assert (shown.text, shown.paragraph.title) == ("Brenn lies on", "Brenn")


def test_own_examples_act_as_the_environment_reads_it() -> None:
    actions = [line.partition(": ")[2] for line in OWN["examples"].splitlines() if line.startswith("Action ")]
    assert {parsed(action)[0] for action in actions} == {"search", "lookup", "finish"}


def test_the_authors_file_brings_their_examples(tmp_path: Path) -> None:
    path = tmp_path / "prompts_naive.json"
    path.write_text(json.dumps({"webthink_simple6": "\nQuestion: Who?\n", "cotqa_simple6": "Question: Where?\n"}))
    assert [each.id for each in read_prompts(path, OWN, SPEC.authors_words).items] == ["examples"]
    for spec in SPECS[1:]:
        brought = read_prompts(path, ALL_WORDS, spec.authors_words)
        assert {each.id: each.question for each in brought.items} == {
            "examples": "Question: Who?",
            "chain_examples": "Question: Where?",
        }


@each_case("after", range(8))
def test_a_budget_ends_it_without_an_answer(after: int) -> None:
    lines = ["Hm.", "Search[Brenn]", step(2, "Search[Nowhere]"), step(3, "Lookup[Ada]"), step(4, "Lookup[Ada]")]
    asked, answer = driven(opened, after, Pages(ToldModel(lines), FOUND))
    assert len(asked) == after
    assert (answer.text, answer.limit) == ("", "tokens")
    assert answer.paragraphs == (BRENN, HISTORY) * (after >= 3)


ACTIONS = st.sampled_from(["search[Brenn]", "Search[Nowhere]", "lookup[a]", "Finish[Ada]", "think[x]", "x"])
TEXTS = st.one_of(st.text(max_size=60), ACTIONS, st.builds(step, st.integers(1, 3), ACTIONS))


@given(st.lists(TEXTS, min_size=1, max_size=8), st.integers(1, 3))
def test_any_texts_end_within_the_limits(lines: list[str], steps: int) -> None:
    settings = ReActSettings(steps=steps)
    world = Pages(ToldModel(lines * 6), FOUND)
    asked, answer = driven(lambda: react(QUESTION, SHOTS, settings), None, world)
    bounds = {each.kind: each.times for each in step_bounds(QUESTION, settings)}
    for kind, name in ((Reason, "reason"), (Open, "open"), (Retrieve, "retrieve")):
        assert sum(isinstance(each, kind) for each in asked) <= bounds[name]
    assert not answer.text or any(answer.text in line for line in lines)


@given(st.text(max_size=80), st.text(max_size=5))
def test_a_page_is_looked_through_once(text: str, keyword: str) -> None:
    page = Page(sentences=sentences_of((Paragraph(id="1", title="", text=text),)))
    results = 0
    while (seen := looked_up(keyword, page)).quoted:
        results += 1
        assert seen.text.startswith(f"(Result {results} / ")
        page = seen.page
    assert results == sum(keyword.lower() in each.lower() for each in page.sentences)


# With self-consistency

BOTH = BackOffSettings(react=ReActSettings(steps=1), chains=4)
SEA, OTHER, NONE = " By it.\nAnswer: the Amber Sea", " Hm.\nAnswer: Black Sea.\nQuestion: x", " So it goes."


def combined(system: Any, *lines: str, settings: BackOffSettings = BOTH) -> Ran:
    return ran(partial(system, QUESTION, SHOTS, settings), lines, FOUND, Pages)


def test_an_answer_of_react_stands_and_no_chain_is_sampled() -> None:
    done = combined(react_self_consistency, step(1, "Finish[Ada]"))
    assert (done.answer.text, done.answer.details, len(done.actions)) == ("Ada", None, 1)


@each_case("action", ["Search[Brenn]", "Finish[]"])
def test_where_react_gives_no_answer_the_chains_vote(action: str) -> None:
    done = combined(react_self_consistency, step(1, action), OTHER, SEA, "", SEA)
    assert done.prompts[-1] == f"Chains.\nQuestion: {QUESTION.text}\nThought:"
    sampled = [each for each in done.asked(Reason) if isinstance(each, Reason) and each.sample is not None]
    assert [(each.sample, each.temperature) for each in sampled] == [(number, 0.7) for number in range(4)]
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences == ("By it.", "Answer: the Amber Sea")
    assert isinstance(done.answer.details, Votes)
    assert done.answer.details.answers == ("Black Sea", "the Amber Sea", "", "the Amber Sea")


def test_half_of_the_votes_are_enough_and_react_is_not_asked() -> None:
    done = combined(self_consistency_react, SEA, SEA, OTHER, NONE)
    assert (done.answer.text, len(done.actions)) == ("the Amber Sea", 4)


@each_case("last", [NONE, " Hm.\nAnswer: Ada"])
def test_with_fewer_votes_react_answers(last: str) -> None:
    done = combined(self_consistency_react, SEA, OTHER, NONE, last, step(1, "Finish[the North Sea]"))
    assert done.answer.text == "the North Sea"
    assert isinstance(done.answer.details, Votes)


def test_where_react_then_has_no_answer_that_of_the_chains_stands() -> None:
    done = combined(self_consistency_react, SEA, OTHER, NONE, NONE, step(1, "Search[Brenn]"))
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "steps")
    assert done.answer.paragraphs == (BRENN, HISTORY)


@each_case("system", [react_self_consistency, self_consistency_react])
def test_where_neither_has_an_answer_there_is_none(system: Any) -> None:
    chains, act = [NONE] * 4, [step(1, "Search[Brenn]")]
    done = combined(system, *(act + chains if system is react_self_consistency else chains + act))
    assert done.answer.text == ""


@each_case(("after", "answer"), [(0, ""), (4, "the Amber Sea"), (5, "the Amber Sea")])
def test_a_budget_leaves_the_majority_of_the_chains(after: int, answer: str) -> None:
    lines = [SEA, OTHER, NONE, NONE, step(1, "Search[Brenn]"), step(2, "Search[Brenn]")]
    settings = replace(BOTH, react=ReActSettings(steps=2))
    world = Pages(ToldModel(lines), FOUND)
    _, ended = driven(lambda: self_consistency_react(QUESTION, SHOTS, settings), after, world)
    assert (ended.text, ended.limit) == (answer, "tokens")


@each_case("after", [0, 2])
def test_a_budget_before_the_chains_leaves_no_answer(after: int) -> None:
    world = Pages(ToldModel([step(1, "Search[Brenn]")]), FOUND)
    asked, ended = driven(lambda: react_self_consistency(QUESTION, SHOTS, BOTH), after, world)
    assert (len(asked), ended.text, ended.limit) == (after, "", "tokens")


@given(st.lists(st.one_of(TEXTS, st.sampled_from([SEA, OTHER])), min_size=1, max_size=8))
@pytest.mark.parametrize("system", [react_self_consistency, self_consistency_react])
def test_any_texts_end_the_back_offs_within_the_limits(system: Any, lines: list[str]) -> None:
    world = Pages(ToldModel(lines * 6), FOUND)
    asked, _ = driven(lambda: system(QUESTION, SHOTS, BOTH), None, world)
    bounds = [each.times for each in back_off_bounds(QUESTION, BOTH) if each.kind == "reason"]
    assert sum(isinstance(each, Reason) for each in asked) <= sum(bounds)
