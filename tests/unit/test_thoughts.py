"""Thoughts are told apart from text, whatever the pieces in which a model writes."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.language_models.thoughts import MARKS, ThoughtSplitter
from tests.cases import each_case


def split(written: str, size: int, *, inside: bool = False, waits: bool = False, cut: bool = False) -> tuple[str, str]:
    splitter = ThoughtSplitter(inside=inside, waits=waits)
    text = "".join(splitter.feed(written[place : place + size]) for place in range(0, len(written), size))
    text += splitter.end(cut=cut)
    return splitter.thoughts, text


@each_case("size", [1, 2, 7, 1000])
@each_case(
    ("written", "expected"),
    [
        ("A text.", ("", "A text.")),
        ("  A text with <b>.", ("", "  A text with <b>.")),
        ("", ("", "")),
        ("<think>Hm.</think>\n\nYes.", ("Hm.", "Yes.")),
        ("\n<think>\n\n</think>\n\nYes.", ("", "Yes.")),
        ("<think>One.</think> <think>Two.</think>Yes.", ("One.\n\nTwo.", "Yes.")),
        ("<think>One <think>two</think> three</think>Yes.", ("One <think>two</think> three", "Yes.")),
        ("<think>One <think>two</think> Yes.", ("One <think>two", "Yes.")),
        ("<think>Without end", ("Without end", "")),
        ("<think>Another's mark [/THINK]</think>Yes.", ("Another's mark [/THINK]", "Yes.")),
        ("The tag <think> opens a thought.", ("", "The tag <think> opens a thought.")),
        ("The tag </think> closes one.", ("", "The tag </think> closes one.")),
        ("First. <think>Hm.</think>Second.", ("Hm.", "First. Second.")),
        ("A mark that isn't whole: <thi", ("", "A mark that isn't whole: <thi")),
        ("◁think▷Hm.◁/think▷Yes.", ("Hm.", "Yes.")),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
            ("Hm.", "Yes."),
        ),
    ],
)
def test_thoughts_are_split_off(written: str, expected: tuple[str, str], size: int) -> None:
    assert split(written, size) == expected


@each_case("size", [1, 5, 1000])
def test_a_thought_may_open_in_the_prompt(size: int) -> None:
    assert split("Hm.</think>Yes, </think> ends it.", size, inside=True) == ("Hm.", "Yes, </think> ends it.")
    assert split("Hm.[/THINK]Yes.", size, inside=True) == ("Hm.", "Yes.")
    assert split("Hm.</think>Yes.", size, waits=True) == ("Hm.", "Yes.")
    assert split("No thought.", size, waits=True) == ("", "No thought.")
    assert split("First. <think>Hm.</think>Second.", size, waits=True) == ("Hm.", "First. Second.")
    assert split("<think>A</think>One. <think>B</think>Two.", size, waits=True) == ("A\n\nB", "One. Two.")
    assert split("The tag <think> opens one.", size, waits=True) == ("", "The tag <think> opens one.")
    assert split("Hm.", size, inside=True) == ("Hm.", "")


def test_a_model_that_ends_its_texts_was_still_thinking_where_it_was_cut() -> None:
    for ends, expected in ((True, ("Hm, and", "")), (False, ("", "Hm, and"))):
        splitter = ThoughtSplitter(waits=True, ends=ends)
        assert (splitter.feed("Hm, and"), splitter.end(cut=True), splitter.thoughts) == ("", *reversed(expected))


def test_nothing_waits_for_a_thought_once_one_was_closed() -> None:
    splitter = ThoughtSplitter(waits=True)
    assert [splitter.feed(piece) for piece in ("<think>Hm.</think>Yes", ". <think>Or", "?</think>So")] == [
        "Yes",
        ". ",
        "So",
    ]
    assert splitter.thoughts == "Hm.\n\nOr?"


def test_an_open_mark_in_a_text_that_was_cut_off_opens_a_thought() -> None:
    assert split("Text. <think>and so on", 3, cut=True) == ("<think>and so on", "Text. ")


PIECES = st.sampled_from(
    [*(each.opening for each in MARKS[:3]), *(each.closing for each in MARKS[:3]), "a b", "\n", "<"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.booleans(), st.booleans(), st.booleans())
def test_the_size_of_pieces_changes_nothing(written: str, inside: bool, waits: bool, cut: bool) -> None:  # noqa: FBT001
    splits = {split(written, size, inside=inside, waits=waits, cut=cut) for size in (1, 3, 1000)}
    assert len(splits) == 1


@given(st.text(alphabet="ab <>/think\n", max_size=40).map(str.strip), st.text(alphabet="xyz \n", max_size=40))
def test_a_thought_between_marks_is_no_text(thought: str, text: str) -> None:
    if "<think>" in thought or "</think>" in thought:
        return
    assert split(f"<think>{thought}</think>{text}", 4) == (thought, text.lstrip())
