"""Pieces that are cut to limits in tokens, and prompts to their last tokens."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason, seen_prompt
from cotrail.core.actions.registry import fingerprint
from cotrail.core.generation import Cut
from cotrail.core.prompts import Asked, Prompt, Shown, Text, Written, assistant, plain, user
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.core.system import expect
from cotrail.engines.language_models.packing import limited
from cotrail.engines.language_models.scripted import ScriptedModel
from tests.cases import each_case
from tests.replay.driving import BINDING, MadeUp
from tests.unit.test_encoding import reopened

VELL = Paragraph(id="1", title="Vell", text="The Vell ends in the Amber Sea")
SHOWN = Shown(paragraph=VELL, form="{title}: {text}", tokens=6)


def words(text: str) -> int:
    return len(text.split())


def cut(prompt: Prompt) -> Prompt:
    return prompt.cut(limited(prompt, words))


def test_pieces_beside_each_other_with_the_same_limit_are_cut_together() -> None:
    pieces = Text("<found> ", tokens=6), SHOWN, Text(" </found>", tokens=6), Text(" go on")
    assert cut(Prompt(turns=(plain(*pieces),))).render() == "<found> Vell: The Vell ends in  go on"


def test_another_turn_and_another_limit_are_cut_by_themselves() -> None:
    pieces = Text("a b c", tokens=2), Text(" d e f", tokens=1), Text(" g")
    assert cut(Prompt(turns=(plain(*pieces),))).render() == "a b  d  g"
    turns = user(Text("a b", tokens=2)), assistant("x"), user(Text("c d e", tokens=2))
    assert [turn.text for turn in cut(Prompt(turns=turns)).turns] == ["a b", "x", "c d "]


def test_a_window_keeps_the_last_tokens_whatever_piece_they_are_in() -> None:
    prompt = Prompt(
        turns=(user("be brief ", Asked("Who was it?")), assistant(Written("I look")), user("b c")), window=5
    )
    assert [turn.text for turn in cut(prompt).turns] == [" it?", "I look", "b c"]


def test_what_has_no_limit_or_is_within_it_stays_as_it_is() -> None:
    prompt = Prompt(turns=(plain("a b", Text(" c", tokens=1)),), window=3)
    assert limited(prompt, words) == ()
    assert cut(prompt) is prompt


PROMPT = Prompt(turns=(user(Asked("Who?")), assistant(Written("Hm. "), Text("<", tokens=6), SHOWN)), window=20)


def test_what_the_model_saw_is_rebuilt_from_the_record() -> None:
    action = Reason(prompt=PROMPT, max_tokens=5, until="stop")
    assert reopened(action) == action
    world = MadeUp(ScriptedModel({"name": "s", "questions": {"Who?": {"answer": "", "messages": ["x"]}}}))
    result = expect(world(action), Generated)  # type: ignore[arg-type]
    assert result.cuts == (Cut(3, 0, 23),)
    stored = msgspec.convert(result.recorded(), Generated)
    assert seen_prompt(action, stored).digest == result.prompt_digest != PROMPT.digest


def test_limits_are_part_of_the_fingerprint_where_there_are_any() -> None:
    def of(prompt: Prompt) -> str:
        return fingerprint(Reason(prompt=prompt, max_tokens=5), BINDING)

    bare = Prompt(turns=(plain("a b"),))
    limits = [bare, Prompt(turns=(plain("a b"),), window=1), Prompt(turns=(plain(Text("a b", tokens=1)),))]
    assert len({of(each) for each in limits}) == 3


@given(st.lists(st.tuples(st.text("ab ", max_size=12), st.sampled_from([None, 1, 3])), min_size=1), st.integers(1, 9))
def test_nothing_is_longer_than_its_limit(texts: list[tuple[str, int | None]], window: int) -> None:
    prompt = Prompt(turns=(plain(*(Text(text, tokens=limit) for text, limit in texts)),), window=window)
    shown = cut(prompt)
    assert sum(words(piece.text) for piece in shown.pieces) <= window
    for place, (_, limit) in enumerate(texts):
        assert limit is None or words(shown.pieces[place].text) <= limit
    assert "".join(text for text, _ in texts).replace(" ", "").count("a") >= shown.render().count("a")


@each_case("tokens", [0, 5, 500])
def test_a_text_of_any_length_is_cut_in_few_counts(tokens: int) -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    long = Prompt(turns=(plain(Text("x" * 100_000, tokens=tokens)),))
    assert long.cut(limited(long, count)).render() == "x" * tokens
    assert len(counted) < 30
