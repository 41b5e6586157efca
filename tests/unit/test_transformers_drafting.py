import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cotrail.engines.language_models.transformers.request import GRAMS, lookup, packed

pytestmark = pytest.mark.usefixtures("transformers")

TOKENS = st.lists(st.sampled_from([0, 1, 256, 257, 65793]), max_size=30)  # bytes of some occur across others


def looked_up(text: list[int], longest: int) -> list[int]:
    for gram in GRAMS:
        starts = [n for n in range(len(text) - gram) if text[n : n + gram] == text[-gram:]]
        if starts:
            return text[starts[-1] + gram :][:longest]
    return []


@given(TOKENS, TOKENS, st.integers(1, 8))
@example([1, 1, 1], [1], 3)
@example([7, 8], [7, 8], 3)
def test_a_draft_is_what_followed_the_last_tokens_before(prompt: list[int], written: list[int], longest: int) -> None:
    assert lookup(packed(prompt), written, longest) == looked_up(prompt + written, longest)


@given(TOKENS, TOKENS, TOKENS)
def test_what_two_texts_have_in_common_is_counted(start: list[int], one: list[int], other: list[int]) -> None:
    from cotrail.engines.language_models.transformers.scheduler import common

    count = common(start + one, start + other)
    assert count >= len(start)
    assert (start + one)[:count] == (start + other)[:count]
    assert (start + one)[count : count + 1] != (start + other)[count : count + 1] or start + one == start + other
