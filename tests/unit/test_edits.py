"""Edits of steps: what is carried out in the place of what a system asks for, and what can't be."""

import json

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.generate import Judge, Prompted, Read, Reason
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.edits import Edit, StepEdit, check_edit, edited, given, read_edit, read_prompt
from cotrail.core.prompts import Asked, Demonstrated, Piece, Prompt, Shown, Text, Written, assistant, plain, tool, user
from cotrail.core.questions import Paragraph
from cotrail.core.system import Action
from cotrail.errors import InputError
from tests.cases import each_case

TOWN = Paragraph(id="p", title="Sild", text="Sild lies on the Wend.")
SHOWN = Shown(paragraph=TOWN)
PLAIN = Prompt(turns=(plain(SHOWN, "\n\nQ: ", Asked("Where is Sild?"), "\nA: ", Written("It is by a river. ")),))
SEARCH = Tool(name="search", description="Searches.", parameters='{"type": "object"}')
TALK = Prompt(
    turns=(
        user("Answer: ", Asked("Where is Sild?")),
        assistant(Written("I search."), calls=(Call(name="search", arguments='{"q": "Sild"}', id="0.0"),)),
        tool("0.0", SHOWN),
    ),
    tools=(SEARCH,),
)
PIECES: st.SearchStrategy[Piece] = st.one_of(
    st.builds(Text, st.text(max_size=8), st.integers(0, 2)),
    st.builds(Asked, st.text(max_size=8)),
    st.builds(Written, st.text(max_size=8)),
    st.builds(lambda text: Shown(paragraph=Paragraph(id="", title="t", text=text)), st.text(max_size=8)),
)
STORABLE = st.text(st.characters(codec="utf-8"), max_size=30)


def by(**edit: str) -> StepEdit:
    return StepEdit(**edit, by="kim")


@for_all(former=st.lists(PIECES, max_size=5), lower=st.booleans(), text=STORABLE)
def test_a_prompt_that_is_read_back_is_the_text_that_was_written(
    former: list[Piece], *, lower: bool, text: str
) -> None:
    asked = Prompt(turns=(replace(plain(*former), lower=lower),))
    assert read_prompt(text, asked).render() == text


@for_all(st.lists(PIECES, max_size=5), st.integers(0, 40), st.integers(0, 40), STORABLE)
def test_the_pieces_that_still_stand_in_a_prompt_stay_what_they_were(
    former: list[Piece], start: int, length: int, text: str
) -> None:
    asked = Prompt(turns=(plain(*former),))
    whole = asked.render()
    changed = whole[:start] + text + whole[start + length :]
    new = read_prompt(changed, asked)
    assert new.render() == changed
    assert len([piece for piece in new.pieces if piece not in former]) <= 1
    if changed == whole:
        assert new.pieces == asked.pieces or not whole


def test_a_text_that_replaces_what_others_wrote_is_quoted_and_one_among_the_systems_words_is_not() -> None:
    changed = PLAIN.render().replace("\nA: ", "\nAnswer: ")
    assert [type(piece) for piece in read_prompt(changed, PLAIN).pieces] == [Shown, Text, Asked, Text, Written]
    moved = PLAIN.render().replace("Sild lies", "<|im_end|> lies").replace("\nA: ", "\nAnswer: ")
    first, *_ = read_prompt(moved, PLAIN).pieces
    assert isinstance(first, Shown)
    assert first.yields == 0


def test_demonstrations_that_stay_are_the_same_piece() -> None:
    shots = Demonstrated(demonstrations=Demonstrations())
    asked = Prompt(turns=(plain(shots, "Q: ", Asked("Who?"), "\nA: "),))
    assert read_prompt("Q: Where?\nA: ", asked).demonstrated is shots


def test_a_conversation_is_changed_as_the_json_that_it_is_printed_as() -> None:
    assert read_prompt(TALK.render(), TALK) == TALK
    written = json.loads(TALK.render())
    written["messages"][2]["content"] = "Nothing was found."
    written["messages"].append({"role": "user", "content": "Go on."})
    changed = read_prompt(json.dumps(written), TALK)
    assert [turn.text for turn in changed.turns] == [
        *(turn.text for turn in TALK.turns[:2]),
        "Nothing was found.",
        "Go on.",
    ]
    assert changed.turns[:2] == TALK.turns[:2]
    assert json.loads(changed.render()) == written


@each_case(
    ("change", "said"),
    [
        (lambda _: "What?", "the prompt is a conversation, and this isn't one"),
        (lambda written: json.dumps({**written, "tools": []}), "the tools of a conversation can't be changed"),
        (lambda written: json.dumps({**written, "messages": []}), "this is no conversation"),
        (lambda written: json.dumps({**written, "messages": [{"role": "boss", "content": ""}]}), "isn't one"),
        (lambda written: json.dumps({**written, "messages": [{"role": "", "content": ""}] * 2}), "no conversation"),
        (lambda written: json.dumps({**written, "more": 1}), "isn't one"),
    ],
)
def test_what_is_no_conversation_is_refused(change: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_prompt(change(json.loads(TALK.render())), TALK)  # type: ignore[operator]


def test_an_edit_is_exactly_one_of_its_parts() -> None:
    assert Edit(query="a").part == "query"
    with pytest.raises(InputError, match="none is given"):
        _ = Edit().part
    with pytest.raises(InputError, match="text and prompt is given"):
        _ = Edit(text="a", prompt="b").part
    assert read_edit({"query": "a", "by": "kim"}) == by(query="a")
    assert read_edit(None) is None


@each_case(
    ("action", "changed"),
    [
        (Retrieve(query="a", count=3, titles=("t",)), Retrieve(query="b", count=3, titles=("t",))),
        (Open(title="a"), Open(title="b")),
        (Lookup(source="wordnet", text="a"), Lookup(source="wordnet", text="b")),
    ],
)
def test_a_query_stands_in_place_of_the_systems(action: Action, changed: Action) -> None:
    check_edit(action, by(query="b"))
    assert edited(action, by(query="b")) == changed
    assert edited(action, None) is action


@each_case(
    ("action", "edit", "said"),
    [
        (Retrieve(query="a", count=3), by(text="b"), "of the kind retrieve, which has no text: its query can be"),
        (Retrieve(query="a", count=3), by(query=" "), "the query is empty"),
        (
            Read(prompt=PLAIN, max_tokens=3),
            by(query="b"),
            "of the kind read, which has no query: its text or its prompt can",
        ),
        (Embed(sentences=("a",)), by(text="b"), "of the kind embed, which has no text: its result can't be edited"),
        (Reason(prompt=PLAIN, max_tokens=3), by(text="a\nb"), "one line"),
        (Reason(prompt=TALK, max_tokens=3), by(prompt="a"), "isn't one"),
        (Judge(prompt=PLAIN, max_tokens=3, choices=("yes", "no")), by(text="maybe"), "has to be one of these words"),
    ],
)
def test_what_a_step_does_not_have_is_refused(action: Action, edit: StepEdit, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_edit(action, edit)


@each_case(
    ("action", "text", "came"),
    [
        (Reason(prompt=PLAIN, max_tokens=3), " It is far. ", ("It is far.", "until", "")),
        (Reason(prompt=PLAIN, max_tokens=3), "", ("", "until", "")),
        (Reason(prompt=PLAIN, max_tokens=3, until="stop", stop=("</s>",)), "<s>a </s> b", ("<s>a ", "stop", "</s>")),
        (Judge(prompt=PLAIN, max_tokens=3, choices=("yes", "no")), "Yes.", ("yes", "until", "")),
    ],
)
def test_a_text_that_is_given_is_a_result_without_tokens(
    action: Prompted, text: str, came: tuple[str, str, str]
) -> None:
    result = given(action, by(text=text))
    assert result is not None
    assert (result.text, result.ended, result.stop) == came
    assert set(result.token_counts.values()) == {0}
    assert result.prompt_digest == action.prompt.digest
    assert given(action, by(prompt="a")) is None


def test_a_text_that_is_given_is_as_good_as_certain() -> None:
    result = given(Reason(prompt=PLAIN, max_tokens=3, scored=True), by(text="It is far."))
    assert result is not None
    assert result.kept_tokens == (("It is far.", 0.0),)
