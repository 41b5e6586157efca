"""Marks of final contents that chains end with, and messages that end where a further example begins."""

from msgspec.structs import replace

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, whole_prompts
from cotrail.core.results import Generated, Result
from cotrail.core.system import Action
from cotrail.systems.searchain.prompts import EXAMPLES, MARKING, SearChainSettings, own_prompt
from cotrail.systems.searchain.tree import Mark
from tests.cases import each_case
from tests.unit.test_searchain import (
    AFTER_ROLE,
    DINOSAUR,
    KIND,
    RIGHT,
    ROLE,
    UNKNOWN,
    WHO,
    WRONG,
    World,
    asked,
    run,
    tree,
)

MARKED = RIGHT.partition("[Final Content]")[0] + (
    "[Final Content]: He is an actor [1]. He plays Arlo [2], an Apatosaurus [3][7]. So the answer is Apatosaurus."
)


def continued(final: str) -> str:
    return f"{AFTER_ROLE.partition('[Final Content]')[0]}[Final Content]: {final}"


def test_without_tracing_no_marks_are_asked_for() -> None:
    words = own_prompt(SearChainSettings(tracing=False))
    assert MARKING not in words
    assert "[1]" not in words
    assert words.count("[Query 1]:") == EXAMPLES.count("[Query 1]:") + 1
    assert words.count("[Unsolved Query]:") == EXAMPLES.count("[Unsolved Query]:") + 1
    assert MARKING in own_prompt(SearChainSettings())
    trace, answer = run(World(RIGHT), tracing=False)
    assert MARKING not in "".join(asked(trace))
    assert (tree(answer).marks, tree(answer).oddities) == ((), ())


def test_marks_that_are_written_without_tracing_name_the_queries_of_that_number() -> None:
    _, answer = run(World(MARKED), tracing=False)
    assert tree(answer).marks == (
        Mark(text="He is an actor", nodes=(0,)),
        Mark(text="He plays Arlo", nodes=(1,)),
        Mark(text="an Apatosaurus", nodes=(2,)),
    )
    assert [(each.round, each.what, each.text) for each in tree(answer).oddities] == [(1, "unknown mark", "[3][7]")]
    assert answer.text == "He is an actor. He plays Arlo, an Apatosaurus. So the answer is Apatosaurus."


def test_a_mark_of_a_query_that_was_asked_before_names_the_node_that_was_looked_at() -> None:
    _, answer = run(World(WRONG, continued("Arlo [1] is one [2].")), tracing=False)
    assert [node.duplicate for node in tree(answer).nodes] == [False, False, False, True, False]
    assert tree(answer).marks == (Mark(text="Arlo", nodes=(1,)), Mark(text="is one", nodes=(4,)))


def test_a_chain_that_continues_the_numbers_of_the_one_before_it_may_be_marked_by_both() -> None:
    chain = f"[Query 3]: {KIND}\n[Answer 3]: One.\n[Final Content]: He [1] is Arlo [2], a kind [3]."
    _, answer = run(World(UNKNOWN, chain, chain), tracing=False)
    assert tree(answer).marks == (
        Mark(text="He", nodes=(0,)),
        Mark(text="is Arlo", nodes=(1,)),
        Mark(text="a kind", nodes=(2,)),
    )


def test_the_numbers_of_a_chain_that_begins_at_one_are_its_own() -> None:
    _, answer = run(World(WRONG, continued("Arlo [3].")), tracing=False)
    assert tree(answer).marks == ()
    assert [(each.round, each.what) for each in tree(answer).oddities] == [(2, "unknown mark")]


def test_a_prompt_of_ones_own_may_ask_for_marks_without_tracing() -> None:
    trace, answer = run(
        World(MARKED), shots={AnswerForm.PROMPT: whole_prompts({"prompt": "Mark: {question}"})}, tracing=False
    )
    assert asked(trace) == [f"Mark: {DINOSAUR.text}"]
    assert len(tree(answer).marks) == 3


def test_the_final_content_of_a_chain_keeps_its_marks_where_the_last_turn_writes_none() -> None:
    _, answer = run(World(MARKED, ""))
    assert answer.text.startswith("He is an actor. He plays Arlo")
    assert [mark.nodes for mark in tree(answer).marks] == [(0,), (1,), (2,)]
    assert tree(answer).marks_are_written


def test_without_retrieval_marks_name_nothing() -> None:
    _, answer = run(World(MARKED), retrieve=False)
    assert (tree(answer).marks, tree(answer).oddities) == ((), ())
    assert "[" not in answer.text


# Where a message ends


class Going(World):
    """A model that goes on with a further example, as far as the stop strings let it."""

    def __call__(self, action: Action) -> Result:
        result = super().__call__(action)
        if not isinstance(action, Reason) or isinstance(action, Read) or not isinstance(result, Generated):
            return result
        text = f"{result.text}\n\n[Question]: Why?\n[Query 1]: Whence?\n[Answer 1]: Thence."
        places = [(place, each) for each in action.stop if (place := text.find(each)) >= 0]
        if not places:
            return replace(result, text=text)
        place, stop = min(places)
        return replace(result, text=text[:place], ended="stop", stop=stop)


def test_a_message_ends_before_a_further_example_and_says_so() -> None:
    trace, answer = run(Going(WRONG, AFTER_ROLE, MARKED))
    _, same = run(Going(WRONG, AFTER_ROLE, MARKED), stop=())
    assert [node.query for node in tree(answer).nodes] == [node.query for node in tree(same).nodes]
    assert answer.text == same.text
    assert all(action.stop == ("\n[Question]",) for action, _ in trace if isinstance(action, Reason))
    assert not any(action.stop for action, _ in trace if isinstance(action, Read))
    assert [odd.round for odd in tree(answer).oddities if odd.what == "further example"] == [1, 2, 3]
    assert "Whence?" not in "".join(said for action, _ in trace if isinstance(action, Reason) for said in texts(action))


def texts(action: Reason) -> list[str]:
    return [turn.text for turn in action.prompt.turns]


@each_case("query", [WHO, ROLE])
def test_the_words_of_a_query_may_hold_the_stop_string_within_a_line(query: str) -> None:
    chain = RIGHT.replace(query, f"{query} [Question] it")
    _, answer = run(Going(chain, MARKED))
    assert f"{query} [Question] it" in [node.query for node in tree(answer).nodes]
