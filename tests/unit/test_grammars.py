"""Grammars of structured output, and where in a text which of them holds."""

import json

import pytest

from cotrail.core.structured_output import Form
from cotrail.engines.language_models.grammars import FREE, Grammars, Guide, grammars
from cotrail.engines.language_models.thinking import MARKS, Marks
from cotrail.engines.language_models.thoughts import ThoughtSplitter
from cotrail.engines.language_models.worker_thoughts import ThinkingText
from tests.cases import each_case

BOTH = Grammars(start="start", behind_thought="behind")
THINK = MARKS[:1]


def followed(written: ThinkingText, *pieces: str) -> list[str]:
    """The grammar that holds at the beginning and behind each piece."""
    guide = Guide(BOTH, written)
    held = [guide.grammar]
    for piece in pieces:
        written.take(piece)
        before = guide.grammar
        assert guide.follow() == (guide.grammar != before)
        held.append(guide.grammar)
    return held


def test_who_asks_for_no_form_is_free() -> None:
    assert grammars(Form(), THINK, {}) == FREE


def test_a_text_is_held_from_its_beginning_to_its_end() -> None:
    assert followed(ThinkingText(), '{"', "a", '"') == ["start"] * 4


def test_nothing_holds_a_thought() -> None:
    written = ThinkingText(ThoughtSplitter(THINK), 99)
    held = followed(written, "<th", "ink>", "Hm", "</think>", "\n\n", "{", "}")
    assert held == ["start", "start", "", "", "behind", "behind", "behind", "behind"]


def test_a_thought_that_the_prompt_opens_is_free_from_the_beginning() -> None:
    written = ThinkingText(ThoughtSplitter(THINK, inside=True), 99)
    assert followed(written, "Hm", "</think>", "{") == ["", "", "behind", "behind"]


def test_a_text_that_began_with_the_end_of_its_thought_goes_on_freely() -> None:
    written = ThinkingText(ThoughtSplitter(THINK, inside=True), 99)
    assert followed(written, "Hm</think", ">{", '"a"') == ["", "", "", ""]


def test_a_text_behind_a_thought_that_was_closed_for_the_model_is_held() -> None:
    written = ThinkingText(ThoughtSplitter(THINK, inside=True), 1)
    guide = Guide(BOTH, written)
    written.take("Hm")
    written.close()
    assert guide.follow()
    assert guide.grammar == "behind"


def test_a_mark_may_be_written_in_tokens_of_its_own() -> None:
    marks = (Marks("<|channel|>analysis<|message|>", "<|end|>"), Marks("<think>", "</think>"))
    made = grammars(Form(choices=("a",)), marks, {"<|channel|>": 7, "<|message|>": 8, "<|end|>": 9})
    assert '(<[7]> | "<|channel|>") "analysis" (<[8]> | "<|message|>") | "<think>" | / ?/ form' in made.start
    assert "channel" not in made.behind_thought


@each_case(
    "form",
    [
        Form(choices=('say "no"', "two\nlines", "é😀", "<think>", "a|b", "back\\slash", "")),
        Form(schema=json.dumps({"type": "object", "x-guidance": {"lenient": False}, "unevaluatedProperties": False})),
        Form(schema="true"),
    ],
    ids=["words", "a schema", "anything"],
)
def test_llguidance_reads_them(form: Form) -> None:
    llguidance = pytest.importorskip("llguidance", reason="llguidance isn't installed")
    made = grammars(form, THINK, {})
    for grammar in (made.start, made.behind_thought):
        assert not llguidance.LLMatcher.validate_grammar_with_warnings(grammar)[0]
