from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.common.printable_text import storable
from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import READ, REASON, Judge, Prompted, Read, Reason
from cotrail.core.actions.kind import digests_in
from cotrail.core.actions.registry import KINDS, kind_of
from cotrail.core.actions.retrieve import RETRIEVE, Lookup, Open, Retrieve
from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Demonstration, Demonstrations, Layout, Stored
from cotrail.core.generation import Until
from cotrail.core.ports.encoders import By
from cotrail.core.ports.retriever import Source
from cotrail.core.prompts import Asked, Prompt, Shown, Text, Turn, Written
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Failure, Generated, Json, Retrieved, failure_of
from cotrail.core.system import Action
from cotrail.errors import PromptTooLongError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case

LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
COUNTS = st.integers(1, 2**31 - 1)
PARAGRAPHS = st.lists(
    st.builds(lambda title, text: Paragraph(id=f"{title}/{text}", title=title, text=text), LINES, TEXTS), max_size=4
).map(tuple)
DEMONSTRATIONS = st.lists(
    st.builds(Demonstration, id=TEXTS, paragraphs=PARAGRAPHS, question=TEXTS, answer=TEXTS), max_size=3
).map(lambda items: Demonstrations(items=tuple(items)))
LONG = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=195, max_size=205)
FEW_SHOT = st.builds(
    few_shot_prompt,
    demonstrations=DEMONSTRATIONS,
    paragraphs=PARAGRAPHS,
    question=TEXTS,
    sentences=st.lists(TEXTS, max_size=3).map(tuple),
    max_paragraph_words=COUNTS,
    pinned_last=st.booleans(),
    layout=st.sampled_from(get_args(Layout)),
)
FORMS = st.sampled_from(["{title}\n{text}", "Reference: {text}"])
PIECES = st.lists(
    st.builds(Text, TEXTS | LONG, st.integers(0, 3))
    | st.builds(Asked, TEXTS | LONG, st.sampled_from(["{question}", "[Question]: {question}"]))
    | st.builds(Written, TEXTS | LONG, st.integers(0, 3))
    | st.builds(
        lambda found, **fields: Shown(paragraph=found, **fields),
        st.builds(lambda text: Paragraph(id=text, title="T", text=text), LINES),
        form=FORMS,
        words=st.none() | COUNTS,
        yields=st.integers(0, 3),
    ),
    max_size=5,
).map(tuple)
CALLS = st.lists(st.builds(Call, name=LINES, arguments=TEXTS, id=LINES), max_size=2).map(tuple)
CONVERSATIONS = st.builds(
    Prompt,
    turns=st.lists(
        st.builds(
            Turn,
            role=st.sampled_from(["system", "user", "assistant", "tool"]),
            pieces=PIECES,
            calls=CALLS,
            answers=LINES,
            lower=st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    tools=st.lists(st.builds(Tool, name=LINES, description=LINES, parameters=st.just("{}")), max_size=2).map(tuple),
)
PROMPTS = FEW_SHOT | CONVERSATIONS
UNTIL = st.sampled_from(get_args(Until))
RETRIEVES = st.builds(Retrieve, query=TEXTS, count=COUNTS, titles=st.lists(TEXTS, max_size=3).map(tuple))
TEMPERATURES = st.none() | st.floats(0, 2)
READS = st.builds(
    Read,
    prompt=PROMPTS,
    max_tokens=COUNTS,
    until=UNTIL,
    stop=st.lists(LINES, max_size=2).map(tuple),
    temperature=TEMPERATURES,
    top_p=st.floats(0, 1),
    top_k=st.integers(0, 9),
    repetition_penalty=st.floats(1, 2),
    scored=st.booleans(),
)
REASONS = st.builds(
    Reason,
    prompt=PROMPTS,
    max_tokens=COUNTS,
    until=UNTIL,
    splitter=st.sampled_from(["rules", "en_core_web_sm@3.8.0"]),
    sample=st.none() | st.integers(0, 9),
    temperature=TEMPERATURES,
)
JUDGES = st.builds(Judge, prompt=PROMPTS, max_tokens=COUNTS, schema=st.sampled_from(["", "{}"]), model=LINES)
GENERATIONS = READS | REASONS | JUDGES
LOOKUPS = st.builds(Lookup, source=st.sampled_from(get_args(Source)), text=TEXTS, other=TEXTS)
EMBEDS = st.builds(Embed, sentences=st.lists(TEXTS, max_size=3).map(tuple), paragraphs=PARAGRAPHS)
PARAGRAPH = PARAGRAPHS.filter(bool).map(lambda some: some[0])
ENTAILS = st.builds(Entail, premise=PARAGRAPH, hypothesis=TEXTS)
EXTRACTS = st.builds(Extract, question=TEXTS, paragraph=PARAGRAPH)
OTHERS = st.lists(TEXTS, max_size=3).map(tuple)
RATES = st.builds(Rate, by=st.sampled_from(get_args(By)), text=TEXTS, others=OTHERS, paragraphs=PARAGRAPHS)
OPENS = st.builds(Open, title=TEXTS)


def stored(request: Json) -> Json:
    """A request as it comes back from a JSON column."""
    return msgspec.json.decode(msgspec.json.encode(request), type=dict)


def reopened(action: Action) -> Action:
    """An action written down, and read again beside the parts that its store keeps."""
    prompt = action.prompt if isinstance(action, Prompted) else None
    kind = kind_of(action)
    paragraphs = {each.digest: each for each in kind.paragraphs(action)}
    demonstrations = {prompt.demonstrations.digest: prompt.demonstrations} if prompt else {}
    request = stored(kind.request(action))
    assert set(digests_in(request)) == set(paragraphs)
    again: Action = kind.read(request, Stored(paragraphs, demonstrations.__getitem__))
    return again


@given(RETRIEVES | GENERATIONS | LOOKUPS | EMBEDS | ENTAILS | EXTRACTS | RATES | OPENS)
def test_an_action_comes_back_as_it_was(action: Action) -> None:
    assert reopened(action) == action


@given(GENERATIONS)
def test_its_prompt_is_rebuilt_byte_for_byte(action: Prompted) -> None:
    again = reopened(action)
    assert isinstance(again, Prompted)
    assert again.prompt.render() == action.prompt.render()
    assert again.prompt.digest == action.prompt.digest


def test_every_kind_of_action_is_tested_here() -> None:
    others = {"lookup", "embed", "entail", "extract", "rate", "open"}
    assert set(KINDS) == {"retrieve", "reason", "read", "judge"} | others


def test_long_parts_stand_in_a_request_by_digest_only() -> None:
    long = Paragraph(id="p", title="Long", text="word " * 1000)
    shot = Demonstration(id="d", paragraphs=(long,), question="Is it?", answer="yes")
    prompt = few_shot_prompt(demonstrations=Demonstrations(items=(shot,)), paragraphs=(long,), question="Who?")
    request = READ.request(Read(prompt=prompt, max_tokens=64))
    assert len(msgspec.json.encode(request)) < 400
    assert digests_in(request) == [long.digest]


def test_a_search_refers_to_no_paragraphs() -> None:
    assert digests_in(RETRIEVE.request(Retrieve(query="a", count=1))) == []


def test_a_paragraph_that_is_gone_is_an_error() -> None:
    prompt = few_shot_prompt(
        demonstrations=Demonstrations(), paragraphs=(Paragraph(id="p", title="T", text="x"),), question="?"
    )
    request = stored(REASON.request(Reason(prompt=prompt, max_tokens=5)))
    with pytest.raises(KeyError):
        REASON.read(request, Stored({}, lambda digest: prompt.demonstrations))


@given(st.builds(
    Generated, text=TEXTS, raw=TEXTS, demonstrations=COUNTS, paragraphs=COUNTS, prompt_digest=TEXTS,
    prompt_tokens=COUNTS, cached_prompt_tokens=COUNTS, generated_tokens=COUNTS,
))  # fmt: skip
def test_what_was_written_comes_back_as_it_was(result: Generated) -> None:
    assert msgspec.convert(stored(result.recorded()), Generated) == result


def test_of_what_was_found_the_number_and_the_digest_stand_in_json() -> None:
    hit = Hit(paragraph=Paragraph(id="p", title="T", text="x"), rank=1, score=0.5)
    for hits in [(), (hit,), (hit, hit)]:
        assert Retrieved(hits=hits).recorded() == {"hits": len(hits), "digest": Retrieved(hits=hits).digest}
    changed = [replace(hit, rank=2), replace(hit, score=0.25), replace(hit, paragraph=replace(hit.paragraph, id="q"))]
    assert len({Retrieved(hits=(each,)).digest for each in [hit, *changed]}) == 4


ANY_TEXT = st.text(st.characters() | st.sampled_from("\0\ud800\udfff\ufffd"))


@given(ANY_TEXT)
def test_whatever_is_stored_can_be(value: str) -> None:
    kept = storable(value)
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    assert len(kept) == len(value)
    assert storable(kept) == kept


@given(TEXTS)
def test_what_can_be_stored_is_left_as_it_is(value: str) -> None:
    assert storable(value) == value


@each_case("bad", [0, 0xD800, 0xDBFF, 0xDC00, 0xDFFF], ids=hex)
def test_what_can_t_be_stored_becomes_the_replacement_character(bad: int) -> None:
    assert storable(f"a{chr(bad)}b") == "a\ufffdb"


def test_a_pair_of_surrogates_is_joined_and_a_lone_one_replaced() -> None:
    assert storable("\ud83d\ude00 \ud83d \ude00\ud83d") == "\U0001f600 \ufffd \ufffd\ufffd"


def test_an_error_is_stored_by_its_class_and_message() -> None:
    assert failure_of(PromptTooLongError("no \0 room")) == Failure(type="PromptTooLongError", message="no \ufffd room")


@given(PROMPTS)
def test_a_prompt_comes_back_from_json_as_it_was(prompt: Prompt) -> None:
    assert msgspec.json.decode(msgspec.json.encode(prompt), type=Prompt) == prompt
