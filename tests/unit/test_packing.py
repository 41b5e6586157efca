import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cotrail.errors import PromptTooLongError
from cotrail.paragraphs import Paragraph
from cotrail.prompting.packing import pack
from cotrail.prompting.prompt import Demonstration, Demonstrations, Prompt

TEXTS = st.text("ab \n", min_size=1, max_size=30)


def words(text: str) -> int:
    return len(text.split())


def characters(text: str) -> int:
    return len(text)


def paragraph(text: str) -> Paragraph:
    return Paragraph(id=text, title="T", text=text)


def demonstration(text: str) -> Demonstration:
    return Demonstration(id=text, paragraphs=(paragraph(text),), question="q", answer=text)


PROMPTS = st.builds(
    lambda demonstrations, paragraphs, sentences: Prompt(
        demonstrations=Demonstrations(items=tuple(map(demonstration, demonstrations))),
        paragraphs=tuple(map(paragraph, paragraphs)),
        question="Who was it?",
        sentences=tuple(sentences),
    ),
    st.lists(TEXTS, max_size=5),
    st.lists(TEXTS, max_size=5),
    st.lists(TEXTS, max_size=3),
)
COUNTERS = st.sampled_from([words, characters])
LIMITS = st.integers(min_value=0, max_value=400)


def packed_or_skip(prompt: Prompt, count: object, limit: int) -> Prompt:
    assert callable(count)
    assume(count(prompt.keep(0, 0).render()) <= limit)
    return pack(prompt, count, limit)


def kept(prompt: Prompt) -> tuple[int, int]:
    return len(prompt.demonstrations.items), len(prompt.paragraphs)


@given(PROMPTS, COUNTERS, LIMITS)
def test_what_is_packed_fits_and_is_the_front_of_what_there_was(prompt: Prompt, count: object, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    assert callable(count)
    assert count(packed.render()) <= limit
    assert packed == prompt.keep(*kept(packed))
    assert (packed.question, packed.sentences) == (prompt.question, prompt.sentences)


@given(PROMPTS, COUNTERS, LIMITS)
def test_one_part_more_would_not_fit(prompt: Prompt, count: object, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    assert callable(count)
    demonstrations, paragraphs = kept(packed)
    if paragraphs < len(prompt.paragraphs):
        assert demonstrations == 0
        assert count(prompt.keep(0, paragraphs + 1).render()) > limit
    elif demonstrations < len(prompt.demonstrations.items):
        assert count(prompt.keep(demonstrations + 1, paragraphs).render()) > limit


@given(PROMPTS, COUNTERS, LIMITS, LIMITS)
def test_more_room_never_keeps_less(prompt: Prompt, count: object, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert callable(count)
    fewer, more = kept(packed_or_skip(prompt, count, small)), kept(pack(prompt, count, large))
    assert all(a <= b for a, b in zip(fewer, more, strict=True))


@given(PROMPTS)
def test_what_fits_is_left_as_it_is(prompt: Prompt) -> None:
    assert pack(prompt, characters, characters(prompt.render())) == prompt


def test_an_estimate_that_is_wrong_either_way_is_settled_on_the_whole_text() -> None:
    prompt = Prompt(demonstrations=Demonstrations(items=tuple(map(demonstration, "abcdefgh"))), question="Who?")
    whole = len(prompt.keep(5, 0).render())
    for factor in (0, 1, 3):

        def count(text: str, factor: int = factor) -> int:
            return len(text) if "Who?" in text else len(text) * factor

        assert kept(pack(prompt, count, whole)) == (5, 0)


def test_a_question_that_does_not_fit_is_refused_with_the_numbers() -> None:
    prompt = Prompt(demonstrations=Demonstrations(), question="one two three", sentences=("four five.",))
    with pytest.raises(PromptTooLongError, match="its 1 sentences take 7 tokens, and the context has room for 6"):
        pack(prompt, words, 6)
    assert pack(prompt, words, 7) == prompt
