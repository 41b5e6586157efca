import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import (
    MOST_CHARACTERS,
    MOST_TOKENS,
    Embedded,
    Entailed,
    Failure,
    Generated,
    Result,
    Retrieved,
    failure_of,
)
from cotrail.errors import UnansweredError, UnrecordableError
from tests.cases import each_case


def found(text: str, score: float = 1.0, count: int = 1) -> Retrieved:
    paragraph = Paragraph(id="p", title="T", text=text)
    return Retrieved(hits=tuple(Hit(paragraph=paragraph, rank=rank + 1, score=score) for rank in range(count)))


def written(text: str = "a", prompt: int = 1, cached: int = 0, generated: int = 1) -> Generated:
    return Generated(
        text=text,
        raw=text,
        demonstrations=0,
        paragraphs=0,
        prompt_digest="",
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        generated_tokens=generated,
    )


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(0, MOST_TOKENS))
def test_whatever_is_finite_and_small_can_be_recorded(text: str, number: float, tokens: int) -> None:
    found(text, number).check_recordable()
    written(text, prompt=tokens, cached=tokens, generated=tokens).check_recordable()
    Embedded(similarities=((number,), (number,))).check_recordable()
    Entailed(entailment=number, neutral=number, contradiction=number).check_recordable()


@each_case(
    "result",
    [found("x" * (MOST_CHARACTERS // 4), count=4), written("x" * (MOST_CHARACTERS + 1))],
    ids=["search", "generation"],
)
def test_what_holds_too_much_text_is_refused_with_how_much_it_is(result: Result) -> None:
    with pytest.raises(UnrecordableError, match=f"holds {result.characters:,} characters.*, and at most 4,000,000"):
        result.check_recordable()


def test_a_text_counts_once() -> None:
    text = written("x" * MOST_CHARACTERS)
    text.check_recordable()
    assert text.characters == MOST_CHARACTERS
    sure = replace(written("xx"), tokens=(("x", 0.5), ("x", 0.5)))
    assert sure.characters == 42


@each_case("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    for result in (
        found("a", number),
        Embedded(similarities=((0.5, number),)),
        Entailed(entailment=0.5, neutral=number, contradiction=0.5),
    ):
        with pytest.raises(UnrecordableError, match="isn't finite"):
            result.check_recordable()


@each_case("tokens", [-1, MOST_TOKENS + 1, 2**63, 10**40])
def test_token_counts_that_cannot_be_added_up_are_refused_with_what_was_counted(tokens: int) -> None:
    with pytest.raises(UnrecordableError, match=str(tokens)):
        written(generated=tokens).check_recordable()
    with pytest.raises(UnrecordableError, match=str(tokens)):
        written(prompt=tokens).check_recordable()
    for name in ("cache_written_tokens", "thought_tokens", "drafted_tokens", "accepted_tokens"):
        with pytest.raises(UnrecordableError, match=str(tokens)):
            replace(written(), **{name: tokens}).check_recordable()


def test_a_failure_keeps_what_was_written_where_it_can_be_recorded() -> None:
    def kept(result: Generated) -> Generated | None:
        return failure_of(UnansweredError("only thoughts", written=result)).written

    assert kept(written()) == written()
    assert kept(written(generated=MOST_TOKENS + 1)) is None


def test_a_failure_counts_by_its_message() -> None:
    assert Failure(type="StepError", message="four").characters == 4
