from collections.abc import Callable
from hashlib import sha256
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cotrail.core.demonstrations import Demonstration, Demonstrations, Drop
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.packing import LOADING_RESERVE, output_tokens, pack
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import PromptTooLongError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case

Count = Callable[[str], int]

TEXTS = st.text("ab \n", min_size=1, max_size=30)


def words(text: str) -> int:
    return len(text.split())


def characters(text: str) -> int:
    return len(text)


def paragraph(text: str) -> Paragraph:
    return Paragraph(id=text, title="T", text=text)


def demonstration(text: str) -> Demonstration:
    return Demonstration(id=text, paragraphs=(paragraph(text),), question="q", answer=text)


def demonstrations(texts: list[str] | str) -> Demonstrations:
    return Demonstrations(items=tuple(map(demonstration, texts)))


def prompts(drops: st.SearchStrategy[Drop]) -> st.SearchStrategy[Prompt]:
    return st.builds(
        lambda shown, paragraphs, sentences, drop: few_shot_prompt(
            demonstrations=demonstrations(shown),
            paragraphs=tuple(map(paragraph, paragraphs)),
            question="Who was it?",
            sentences=tuple(sentences),
            drop=drop,
        ),
        st.lists(TEXTS, max_size=5),
        st.lists(TEXTS, max_size=5),
        st.lists(TEXTS, max_size=3),
        drops,
    )


ANY = prompts(st.sampled_from(get_args(Drop)))
SIMPLE = prompts(st.sampled_from(("last", "first")))
COUNTERS = st.sampled_from([words, characters])
LIMITS = st.integers(min_value=0, max_value=800)


def fit(prompt: Prompt, count: Count, limit: int) -> Prompt:
    """Packs into so many tokens; the rules of the authors' code leave one more of the context unused."""
    return pack(prompt, count, limit + (prompt.drop != "last"), 0)


def needed(prompt: Prompt, count: Count) -> int:
    """The tokens of a prompt as its rule counts them: those of the authors' code add up the parts."""
    if prompt.drop == "last":
        return count(prompt.render())
    parts = [each.render() for each in prompt.demonstrations.items]
    return sum(map(count, parts)) + count(prompt.keep(0, len(prompt.paragraphs)).render())


def packed_or_skip(prompt: Prompt, count: Count, limit: int) -> Prompt:
    """What can be packed; that the rest is refused, other tests say."""
    bare = prompt.keep(0, 0).without_written()
    needed = count(bare.render()) + max((count(d.render()) + 3 for d in prompt.demonstrations.items), default=0)
    assume(max(needed, count(prompt.keep(0, 0).render())) <= limit)
    return fit(prompt, count, limit)


def kept(prompt: Prompt) -> tuple[int, int]:
    return len(prompt.demonstrations.items), len(prompt.paragraphs)


def shown(prompt: Prompt) -> str:
    return "".join(each.id for each in prompt.demonstrations.items)


@given(ANY, COUNTERS, LIMITS)
def test_what_is_packed_fits_and_can_be_rebuilt_from_three_numbers(prompt: Prompt, count: Count, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    assert needed(packed, count) <= limit
    assert count(packed.render()) <= limit
    rebuilt = prompt.keep(*kept(packed), packed.first_demonstration)
    assert rebuilt == packed
    assert rebuilt.render() == packed.render()
    assert (packed.question, packed.written, packed.drop) == (prompt.question, prompt.written, prompt.drop)


@given(SIMPLE, COUNTERS, LIMITS)
def test_one_part_more_would_not_fit(prompt: Prompt, count: Count, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    shots, paragraphs = kept(packed)
    if paragraphs < len(prompt.paragraphs):
        assert shots == 0
        assert count(prompt.keep(0, paragraphs + 1).render()) > limit
    elif shots < len(prompt.demonstrations.items):
        more = 2 if prompt.drop == "last" and 2 <= shots < len(prompt.demonstrations.items) - 1 else 1
        first = len(prompt.demonstrations.items) - shots - more if prompt.drop == "first" else 0
        assert count(prompt.keep(shots + more, paragraphs, first).render()) > limit


@given(prompts(st.just("first")), COUNTERS, LIMITS, st.integers(min_value=0, max_value=100))
def test_what_stands_between_the_parts_takes_its_tokens_from_the_answer_alone(
    prompt: Prompt, count: Count, limit: int, max_tokens: int
) -> None:
    context = limit + max_tokens + 1
    try:
        packed = pack(prompt, count, context, max_tokens)
    except PromptTooLongError:
        assume(False)
    if packed.paragraphs == prompt.paragraphs:
        assert needed(packed, count) <= limit
    written = output_tokens(count(packed.render()), context, max_tokens)
    assert written >= 1 or max_tokens == 0
    assert count(packed.render()) + written <= context
    shots, first = kept(packed)[0], packed.first_demonstration
    if first:
        more = prompt.keep(shots + 1, len(prompt.yielding), first - 1)
        assert needed(more, count) > limit or count(more.render()) >= context


@each_case(("drop", "left"), [("last", "ab"), ("first", "abcd"), ("released", "abcd")])
def test_a_tokenizer_that_counts_line_breaks_leaves_the_authors_rules_as_they_are(drop: Drop, left: str) -> None:
    def count(text: str) -> int:
        return by_size(text) + text.count("\n\n\n")

    prompt = few_shot_prompt(demonstrations=demonstrations("abcd"), question="Who?", drop=drop)
    packed = pack(prompt, count, 1000, 459)
    assert shown(packed) == left
    written = output_tokens(count(packed.render()), 1000, 459)
    assert written == (456 if left == "abcd" else 459)


@given(SIMPLE, COUNTERS, LIMITS)
def test_the_number_that_the_last_ones_go_down_to_is_even_or_one(prompt: Prompt, count: Count, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    shots, whole = len(packed.demonstrations.items), len(prompt.demonstrations.items)
    assert prompt.drop != "last" or shots in {whole, 1} or shots % 2 == 0


@given(ANY, COUNTERS, LIMITS)
def test_each_rule_keeps_the_end_that_it_says(prompt: Prompt, count: Count, limit: int) -> None:
    packed = packed_or_skip(prompt, count, limit)
    number, first = len(packed.demonstrations.items), packed.first_demonstration
    assume(number)
    match prompt.drop:
        case "last":
            assert first == 0
        case "first":
            assert first + number == len(prompt.demonstrations.items)
        case "released":
            loaded = first + number
            sizes = [count(each.render()) for each in prompt.demonstrations.items[:loaded]]
            assert len(prompt.demonstrations.items) == 1 or sum(sizes) + max(sizes) + LOADING_RESERVE <= limit + 1


@given(SIMPLE, COUNTERS, LIMITS, LIMITS)
def test_more_room_never_keeps_less(prompt: Prompt, count: Count, one: int, other: int) -> None:
    small, large = sorted((one, other))
    fewer, more = kept(packed_or_skip(prompt, count, small)), kept(fit(prompt, count, large))
    assert all(a <= b for a, b in zip(fewer, more, strict=True))


@given(SIMPLE)
def test_what_fits_is_left_as_it_is(prompt: Prompt) -> None:
    assert fit(prompt, characters, characters(prompt.render())) == prompt


def test_an_estimate_that_is_wrong_either_way_is_settled_on_the_whole_text() -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abcdefgh"), question="Who?")
    whole = len(prompt.keep(5, 0).render())
    for factor in (0, 1, 3):

        def count(text: str, factor: int = factor) -> int:
            return len(text) if "Who?" in text else len(text) * factor

        assert kept(fit(prompt, count, whole)) == (4, 0)


@each_case(("factor", "left"), [(0, 8), (1, 5), (3, 1)])
def test_the_authors_rule_goes_by_its_counts_of_the_parts_as_long_as_the_whole_text_fits(
    factor: int, left: int
) -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abcdefgh"), question="Who?", drop="first")
    parts = sum(len(each.render()) for each in prompt.demonstrations.items[:5])
    limit = len(prompt.keep(0, 0).render()) + parts

    def count(text: str) -> int:
        return len(text) if "Who?" in text else len(text) * factor

    assert kept(pack(prompt, count, limit + 1001, 1000)) == (left, 0)
    whole = pack(prompt, count, limit + 1, 0)
    assert len(whole.render()) <= limit


SIZES = {"a": 100, "b": 200, "c": 150, "d": 50, "Who?": 40}
"""Tokens of four demonstrations and of the question."""


def by_size(text: str) -> int:
    """The tokens of a text that is made of parts of these sizes."""
    return sum(size for part, size in SIZES.items() if f"A: {part}" in text or f"Q: {part}" in text)


@each_case(
    ("drop", "limit", "left"),
    [
        ("last", 540, "abcd"),
        ("last", 539, "ab"),
        ("last", 489, "ab"),
        ("last", 139, ""),
        ("first", 540, "abcd"),
        ("first", 539, "bcd"),
        ("first", 439, "cd"),
        ("first", 90, "d"),
        # 500 + the longest, 200, + 300
        ("released", 999, "abcd"),
        ("released", 998, "abc"),
        # 450 + 200 + 300
        ("released", 949, "abc"),
        ("released", 948, "ab"),
        # 300 + 200 + 300
        ("released", 798, "a"),
        # 100 + 100 + 300
        ("released", 499, "a"),
        ("released", 498, ""),
    ],
)
def test_the_rules_drop_these_demonstrations(drop: Drop, limit: int, left: str) -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abcd"), question="Who?", drop=drop)
    assert shown(fit(prompt, by_size, limit)) == left


def test_the_released_rule_drops_the_last_as_it_loads_and_the_first_beside_long_paragraphs() -> None:
    long = Paragraph(id="p", title="P", text="x")

    def count(text: str) -> int:
        return by_size(text) + 600 * ("Wikipedia Title: P" in text)

    prompt = few_shot_prompt(
        demonstrations=demonstrations("abcd"), question="Who?", drop="released", paragraphs=(long,)
    )
    packed = fit(prompt, count, 949)
    assert (shown(packed), packed.first_demonstration) == ("c", 2)  # d as it loads, a and b for the paragraph
    assert packed == prompt.keep(1, 1, 2)


@each_case(("max_tokens", "left"), [(0, "abcd"), (459, "abcd"), (460, "bcd"), (559, "bcd"), (560, "cd")])
def test_the_released_rule_loads_into_the_whole_context_and_calls_with_room_for_the_answer(
    max_tokens: int, left: str
) -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abcd"), question="Who?", drop="released")
    assert shown(pack(prompt, by_size, 1000, max_tokens)) == left


def test_the_released_rule_takes_a_single_demonstration_as_it_is() -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("a"), question="Who?", drop="released")
    assert shown(fit(prompt, by_size, 140)) == "a"


def test_a_question_that_does_not_fit_is_refused_with_the_numbers() -> None:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question="one two three", sentences=("four five.",))
    with pytest.raises(PromptTooLongError, match="never left out take 7 tokens, and the context has room for 6"):
        fit(prompt, words, 6)
    assert fit(prompt, words, 7) == prompt


@each_case("drop", get_args(Drop))
def test_a_context_that_holds_not_even_the_shortest_demonstration_is_refused(drop: Drop) -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abc"), question="Who?", sentences=("So it is.",), drop=drop)
    with pytest.raises(PromptTooLongError, match="shortest of 3 demonstrations and the question take 140 tokens"):
        fit(prompt, by_size, 139)


def test_a_demonstration_that_fits_but_for_the_paragraphs_may_go() -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("a"), question="Who?", paragraphs=(paragraph("long"),))

    def count(text: str) -> int:
        return by_size(text) + 60 * ("long" in text)

    assert kept(fit(prompt, count, 140)) == (0, 1)


def test_without_demonstrations_a_small_context_is_no_matter() -> None:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question="Who?")
    assert fit(prompt, by_size, 40) == prompt


@each_case("drop", ["last", "first"])
def test_what_a_model_records_rebuilds_the_prompt_that_it_saw(drop: Drop) -> None:
    prompt = few_shot_prompt(demonstrations=demonstrations("abcd"), question="Who?", drop=drop)
    model = ScriptedModel({"name": "s", "questions": {}, "default": {"answer": "yes"}, "context": 30})
    seen = model.generate(GenerationRequest(prompt, "line", 2))
    assert 0 < seen.demonstrations < 4
    rebuilt = prompt.keep(seen.demonstrations, seen.paragraphs, seen.first_demonstration)
    assert sha256(rebuilt.render().encode()).hexdigest() == seen.prompt_digest
    assert (seen.first_demonstration == 0) == (drop == "last")
