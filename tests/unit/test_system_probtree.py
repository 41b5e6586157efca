"""ProbTree, held against section 3 of its paper and the rules of its authors' code (HotpotQA's folder)."""

import json
import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import System
from cotrail.systems.parts.answers import mean_score
from cotrail.systems.probtree import (
    UNKNOWN,
    GrowingTree,
    Node,
    ProbTreeSettings,
    QuestionTree,
    candidate,
    parts_in,
    probtree,
    tree_of,
)
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Line, Ran, ToldModel, ran
from tests.unit.test_budgets import driven
from tests.unit.test_systems import wrote

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
RIVER, END = "Which river flows through Brenn?", "On which sea does <1> end?"
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
SEA = Paragraph(id="3", title="Sea", text="Seas are large.")
FOUND = {QUESTION.text: (SEA,), RIVER: (BRENN,), "On which sea does the Vell end?": (SEA, VELL), "the Vell": (VELL,)}
TREE = json.dumps({QUESTION.text: [RIVER, END]})
WORDS = {
    "decompose": "D {question}",
    "from_memory": "M {question}",
    "from_paragraphs": "P {paragraphs}{question}",
    "from_children": "C {context}{question}",
}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}


def opened(question: Question = QUESTION, **settings: Any) -> System:
    return probtree(question, SHOTS, ProbTreeSettings(**settings))


def told(*lines: Line, question: Question = QUESTION, **settings: Any) -> Ran:
    return ran(partial(opened, question, **settings), lines, FOUND)


def states(answer: str, confidence: float = 0.99) -> Line:
    return f" Because. So the answer is: {answer}.\n\nQ: more", confidence


def nodes(done: Ran) -> tuple[Node, ...]:
    assert isinstance(done.answer.details, QuestionTree)
    return done.answer.details.nodes


def queries(done: Ran) -> list[str]:
    return [each.query for each in done.actions if isinstance(each, Retrieve)]


def scored(text: str, *tokens: tuple[str, float]) -> Generated:
    return replace(wrote(text), raw="".join(each for each, _ in tokens), tokens=tokens, ended="end")


WHOLE: tuple[Line, ...] = (
    (TREE, 0.8),
    *(states("the Oder", 0.5), states("the Vell", 0.9)),
    *(states("Unknown"), states("Amber Sea", 0.7)),
    *(states("the Black Sea", 0.3), states("the Amber Sea", 0.6), states("large", 0.4)),
)


def test_questions_are_answered_from_below_and_the_likeliest_answer_stands() -> None:
    done = told(*WHOLE)
    assert done.prompts == [
        f"D {QUESTION.text}",
        f"M {RIVER}",
        f"P #1 Brenn\n{BRENN.text}\n{RIVER}",
        "M On which sea does the Vell end?",
        f"P #1 Sea\n{SEA.text}\n#2 Vell\n{VELL.text}\nOn which sea does the Vell end?",
        f"M {QUESTION.text}",
        f"C {RIVER} the Vell\nOn which sea does the Vell end? Amber Sea\n{QUESTION.text}",
        f"P #1 Sea\n{SEA.text}\n{QUESTION.text}",
    ]
    assert queries(done) == [RIVER, "On which sea does the Vell end?", "the Vell", QUESTION.text]
    assert all(isinstance(each, Reason) and each.scored for each in done.actions if isinstance(each, Prompted))
    first, second, root = nodes(done)
    assert [each.answer.source for each in (first, second, root) if each.answer] == ["open", "open", "child"]
    assert root.children == (0, 1)
    assert root.decomposition == pytest.approx(math.log(0.8))
    below = math.log(0.9) + math.log(0.7)
    assert root.answer is not None
    assert root.answer.score == pytest.approx((math.log(0.6) + math.log(0.8) + below) / 4)
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences[0] == f"{RIVER} the Vell"
    assert done.answer.paragraphs == (BRENN, SEA, VELL)


def test_questions_that_need_nothing_of_each_other_are_asked_at_once() -> None:
    tree = json.dumps({QUESTION.text: ["A?", "B?"]})
    done = told(tree, *[states("x")] * 7)
    assert done.prompts[1:3] == ["M A?", "M B?"]


@each_case("sources", ["closed", "open"])
def test_each_source_can_be_left_out(sources: str) -> None:
    done = told("no tree", states("it"), sources=sources)
    (root,) = nodes(done)
    assert [each.source for each in root.candidates] == [sources]
    assert len(queries(done)) == (sources == "open")


@each_case(
    "written", ["", " \n", "A list.", "{", '{"a"', '{"a": [', '{"a": ["b"', "[" * 5000, '{"a": ' + "[" * 5000, "{3: 4}"]
)
def test_a_question_without_a_tree_is_answered_as_it_is(written: str) -> None:
    done = told(written, states("x"), states("y", 0.5), max_tree_tokens=9999)
    assert [(each.children, each.question) for each in nodes(done)] == [((), QUESTION.text)]
    assert done.answer.text == "x"


def test_what_is_whole_of_a_broken_tree_counts() -> None:
    written = f'A: {{"Copied?": ["{RIVER}", "{END}"], "{RIVER}": ["Who'
    assert [each.question for each in tree_of(QUESTION.text, replace(wrote(written), raw=written), 20)] == [
        RIVER,
        END,
        QUESTION.text,
    ]


def test_lists_of_anything_but_questions_decompose_nothing() -> None:
    written = '{"a": [], "b": [""], "c": [1], "d": "x", "e": {"f": ["g"]}, "h": ["i"]}'
    whole = replace(wrote(written), raw=written)
    assert [name for name, parts in parts_in(whole).items() if parts.questions] == ["h"]
    assert [each.question for each in tree_of("q", whole, 9)] == ["q"]


def test_the_score_of_a_decomposition_is_that_of_its_list() -> None:
    tokens = (('{"q":', -9.0), (' ["a",', -1.0), (' "b"],', -0.5), (' "c": ["d"]}', -9.0))
    written = scored("".join(text for text, _ in tokens), *tokens)
    assert tree_of("q", written, 9)[-1].decomposition == -0.75
    certain = scored('{"q": ["a"]}', ('{"q": ["a"]}', 0.0))
    assert tree_of("q", certain, 9)[-1].decomposition == 0.0


def test_characters_that_no_store_holds_are_replaced() -> None:
    written = '{"q": ["\\ud800 a", "b"]}'
    first, *_ = tree_of("q", replace(wrote(written), raw=written), 9)
    assert first.question.encode()


def test_a_question_with_a_reference_a_circle_and_one_without_room_are_not_decomposed() -> None:
    written = json.dumps({"q": ["a", "b <1>", "c"], "a": ["d", "q"], "b <1>": ["e"], "c": ["f", "g"]})
    whole = replace(wrote(written), raw=written)
    assert [each.question for each in tree_of("q", whole, 6)] == ["a", "b <1>", "f", "g", "c", "q"]
    assert [each.question for each in tree_of("q", whole, 5)] == ["a", "b <1>", "c", "q"]
    assert [each.question for each in tree_of("q", whole, 3)] == ["q"]


def test_references_to_nothing_and_to_later_questions_stay_as_they_stand() -> None:
    tree = GrowingTree("q")
    tree.grow(tree_of("q", replace(wrote(text := '{"q": ["<2> <0> <9>", "<1> <2>"]}'), raw=text), 9))
    assert [tree.referred(each) for each in tree.nodes] == [{}, {"<1>": 0}, {}]
    assert [each.number for each in tree.ready] == [0]
    answer = candidate("closed", scored("Yes. So the answer is: <2>", ("Yes.", -1.0), (" So the answer is: <2>", -1.0)))
    tree.nodes[0] = tree.nodes[0].answered("x", (answer,))
    assert tree.asked(tree.nodes[1]) == ("<2> <2>", ("<2>",))


@each_case(
    ("text", "answer"),
    [
        ("It is. So the answer is: Ada.", "Ada"),
        ("It is. So the answer is:\nAda\nand more", "Ada"),
        ("So the answer is: A. So the answer is: B.", "B"),
        ("It is. So the answer is: Unknown.", ""),
        ("It is. So the answer is: .", ""),
        ("It is Ada.", ""),
        ("", ""),
    ],
)
def test_a_chain_states_its_answer_or_it_is_unknown(text: str, answer: str) -> None:
    read = candidate("closed", scored(text, (text, -0.5)))
    assert (read.text, read.score) == (answer, -0.5 if answer else UNKNOWN)


def test_only_what_stands_before_the_statement_is_scored() -> None:
    text = "It is. So the answer is: Ada"
    tokens = (("It", -1.0), (" is.", -2.0), (" So", -9.0), (" the answer is: Ada", -9.0))
    assert candidate("closed", scored(text, *tokens)).score == -1.5
    alone = candidate("closed", scored("So the answer is: Ada", ("So the answer is: Ada", -0.1)))
    assert (alone.text, alone.score) == ("Ada", UNKNOWN)


def test_a_chain_that_is_cut_off_is_unknown() -> None:
    written = replace(scored("It is. So the answer is: Ad", ("It is. So the answer is: Ad", -0.1)), ended="length")
    assert candidate("open", written).score == UNKNOWN


def test_the_score_of_a_part_is_that_of_the_tokens_that_touch_it() -> None:
    written = scored("ab cd", ("ab", -1.0), (" c", -2.0), ("d", -4.0))
    assert mean_score(written, 0, 2) == -1.0
    assert mean_score(written, 1, 4) == -1.5
    assert mean_score(written, 5, 9) is None
    assert mean_score(replace(written, tokens=()), 0, 5) is None


def test_where_nothing_is_known_the_answer_is_empty() -> None:
    done = told("no tree", "Hm.", "Hm.")
    assert (done.answer.text, done.answer.limit) == ("", "")


def test_what_is_not_known_below_is_said_to_be_unknown() -> None:
    done = told(TREE, "Hm.", "Hm.", "Hm.", "Hm.", "Hm.", states("it"), "Hm.")
    assert done.prompts[-2].startswith(f"C {RIVER} Unknown\n")
    assert "M On which sea does  end?" in done.prompts


def test_a_pinned_passage_stands_among_the_paragraphs() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = told("no tree", states("x"), states("y"), question=question)
    assert done.prompts[-1] == f"P #1 Pin\nPinned.\n#2 Sea\n{SEA.text}\n{QUESTION.text}"


@each_case(
    ("after", "prompt"),
    [
        (0, f"M {QUESTION.text}"),
        (1, f"M {QUESTION.text}"),
        (3, f"P #1 Brenn\n{BRENN.text}\n{QUESTION.text}"),
        (4, f"C {RIVER} the Vell\n{QUESTION.text}"),
        (8, f"C {RIVER} the Vell\nOn which sea does the Vell end? Amber Sea\n{QUESTION.text}"),
    ],
)
def test_a_budget_has_the_question_answered_from_what_there_is(after: int, prompt: str) -> None:
    def reply(action: Any) -> Any:
        """The line of the action's prompt, however often it is asked."""
        if not isinstance(action, Prompted):
            return MadeUp(ToldModel([]), FOUND)(action)
        begins = action.prompt.render()[:1]
        line = {"D": TREE, "M": states("the Oder", 0.5), "P": states("Amber Sea"), "C": states("Sea")}[begins]
        if action.prompt.question == RIVER and begins == "P":
            line = states("the Vell")
        return MadeUp(ToldModel([line]), FOUND)(action)

    asked, answer = driven(opened, after, reply)
    assert isinstance(asked[-1], Reason)
    assert asked[-1].prompt.render() == prompt
    assert (answer.limit, bool(answer.text)) == ("tokens", True)
    assert len(answer.sentences) >= 1


QUESTIONS = st.sampled_from([QUESTION.text, RIVER, END, "a", "b <1>", "c <2> <1>", "<3>"])
OBJECTS = st.dictionaries(QUESTIONS, st.lists(QUESTIONS, max_size=4), max_size=5).map(json.dumps)
CUT = st.tuples(OBJECTS, st.integers(0, 200)).map(lambda drawn: drawn[0][: drawn[1]])
CHAINS = st.lists(st.sampled_from(["So the answer is:", " x", ".", "Unknown", "\n", "\n\n", "<1>"])).map("".join)


@given(OBJECTS | CUT | st.text(), st.lists(CHAINS, min_size=19, max_size=19))
def test_any_texts_end_within_the_limits(tree: str, chains: list[str]) -> None:
    world = MadeUp(ToldModel([tree, *chains]), FOUND)
    asked, answer = driven(partial(opened, max_questions=6), None, world)  # type: ignore[arg-type]
    assert len([each for each in asked if isinstance(each, Prompted)]) <= 1 + 3 * 6
    assert isinstance(answer.details, QuestionTree)
    assert len(answer.details.nodes) <= 6
    assert all(each.answer for each in answer.details.nodes)
    assert answer.limit == ""
