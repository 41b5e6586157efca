"""Thoughts are told apart from text, whatever the pieces in which a model writes."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.language_models.thinking import FRAMES, MARKS, Unframed
from cotrail.engines.language_models.thoughts import ThoughtSplitter
from cotrail.engines.language_models.worker_thoughts import ThinkingText
from tests.cases import each_case


def split(
    written: str, size: int, *, inside: bool = False, waits: bool = False, cut: bool = False, quotes: bool = False
) -> tuple[str, str]:
    splitter, text = ThoughtSplitter(inside=inside, waits=waits, quotes=quotes), ""
    for place in range(0, len(written), size):
        more = splitter.feed(written[place : place + size])
        text = more if splitter.takes_back else text + more
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
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", ("Hm.", "Yes.")),
    ],
)
def test_thoughts_are_split_off(written: str, expected: tuple[str, str], size: int) -> None:
    assert split(written, size) == expected


@each_case("size", [1, 2, 7, 1000])
@each_case(
    ("written", "expected"),
    [
        ("<think>Hm.</think>\n\nYes.", ("Hm.", "Yes.")),
        ("<think>Hm.</think>Yes.", ("Hm.", "Yes.")),
        ("<think>It says </think> there. Go on.\n</think>\n\nYes.", ("It says </think> there. Go on.", "Yes.")),
        ("<think>It says `</think>`, so.</think>Yes.", ("It says `</think>`, so.", "Yes.")),
        ("<think>It says\n</think>\nand so on.\n</think>\nYes.", ("It says\n</think>and so on.", "Yes.")),
        ("<think>A</think>B</think>C</think>Yes.", ("A</think>B</think>C", "Yes.")),
        ("<think>Hm. </think> Yes.", ("Hm.", "Yes.")),
        ("<think>Hm.</think>The tag </think> closes one.", ("Hm.", "The tag </think> closes one.")),
        ("<think>Hm.</think>Yes.</think>", ("Hm.", "Yes.")),
        ("<think>Hm.</think>Yes.</think>\n", ("Hm.", "Yes.")),
        ("The tag </think> closes one.", ("", "The tag </think> closes one.")),
        ("Nothing opens it.\n</think>\n\nYes.", ("Nothing opens it.", "Yes.")),
    ],
)
def test_the_last_mark_ends_a_thought_that_quotes_others(written: str, expected: tuple[str, str], size: int) -> None:
    assert split(written, size, quotes=True) == expected


def test_a_thought_that_was_cut_behind_a_quoted_mark_has_no_text() -> None:
    assert split("<think>It says </think> and", 3, cut=True, quotes=True) == ("It says </think> and", "")
    assert split("It says </think> and so.</think>Yes.", 3, waits=True, quotes=True) == (
        "It says </think> and so.",
        "Yes.",
    )
    assert split("Hm. </think> Yes.", 3, waits=True, quotes=True) == ("Hm.", "Yes.")


@each_case("size", [1, 3, 1000])
@each_case(
    ("written", "expected"),
    [
        ("<|channel|>final<|message|>Yes.<|return|>", ("", "Yes.")),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
            ("Hm.", "Yes."),
        ),
        (
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>B<|end|>"
            "<|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
            ("A<|channel|>commentary<|message|>B", "Yes."),
        ),
        ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>\nYes.<|END_RESPONSE|>", ("Hm.", "Yes.")),
        ("<|START_RESPONSE|>Yes.<|END_RESPONSE|><|END_OF_TURN_TOKEN|>", ("", "Yes.")),
        ("<|channel>thought\nHm.\n<channel|>Yes.<turn|>", ("Hm.", "Yes.")),
        ("<|channel>thought\n<channel|>Yes.", ("", "Yes.")),
    ],
)
def test_the_frames_of_families_are_no_text(written: str, expected: tuple[str, str], size: int) -> None:
    for quotes in (False, True):
        splitter, unframed = ThoughtSplitter(quotes=quotes), Unframed()
        pieces = [written[place : place + size] for place in range(0, len(written), size)]
        text = "".join(unframed.feed(splitter.feed(piece)) for piece in pieces)
        text += unframed.feed(splitter.end()) + unframed.end()
        assert (splitter.thoughts, text) == expected
    read = ThinkingText(ThoughtSplitter(), 99)
    assert ("".join(map(read.take, pieces)) + read.end(cut=False), read.thoughts) == (expected[1], expected[0])


def test_frames_that_end_a_text_are_left_to_be_found() -> None:
    unframed = Unframed(stop=("<|end|>",))
    assert unframed.feed("Yes.<|end|>No.<|return|>") + unframed.end() == "Yes.<|end|>No."
    assert all(Unframed().feed(f"{frame}a") == "a" for frame in FRAMES)


def test_quoting_mark_after_mark_takes_linear_time() -> None:
    for written in ("</think>b" * 5_000, " </think> b" * 5_000, "<think>a" * 5_000, "<|channel|>" * 5_000):
        thoughts, text = split(f"<think>a{written}", 4, quotes=True)
        assert len(thoughts) + len(text) > len(written) / 4


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
    [*(each.opening for each in MARKS[:3]), *(each.closing for each in MARKS[:3]), "a b", "\n", "<", " ", "`"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_size_of_pieces_changes_nothing(
    written: str,
    inside: bool,  # noqa: FBT001
    waits: bool,  # noqa: FBT001
    cut: bool,  # noqa: FBT001
    quotes: bool,  # noqa: FBT001
) -> None:
    splits = {split(written, size, inside=inside, waits=waits, cut=cut, quotes=quotes) for size in (1, 3, 1000)}
    assert len(splits) == 1


@given(st.text(alphabet="ab <>/think\n", max_size=40).map(str.strip), st.text(alphabet="xyz \n", max_size=40))
def test_a_thought_between_marks_is_no_text(thought: str, text: str) -> None:
    if "<think>" in thought or "</think>" in thought:
        return
    assert split(f"<think>{thought}</think>{text}", 4) == (thought, text.lstrip())
