from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.questions import Paragraph
from cotrail.data.demonstrations.sets import in_form, read_demonstrations, write_demonstrations
from cotrail.errors import DemonstrationError
from tests.cases import each_case

RELEASED = Path(__file__).parents[2].parent / "shared" / "data" / "ircot_prompts"

needs_released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released prompt files are not beside the repo")

SOUND = """# METADATA: {"qid": "a1"}
Wikipedia Title: Lake Vell
Lake Vell lies in Ostmark.

Wikipedia Title: Ostmark
Ostmark's capital is Brenn.

Q: What is the capital of the land of Lake Vell?
A: Lake Vell lies in Ostmark. The capital of Ostmark is Brenn. So the answer is: Brenn.


# METADATA: {"qid": "a2"}
Q: Answer by reasoning.
Is Brenn a lake?
A: Brenn is a city. So the answer is: no.
"""

LINES = st.text('ab ".\\ß木\u2028:', min_size=1, max_size=12).map(str.strip).filter(bool)
"""Text as it stands on one line of a file."""

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "demonstrations.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_file_is_read_part_by_part(write: Write) -> None:
    first, second = read_demonstrations(write(SOUND)).items
    assert (first.id, second.id) == ("a1", "a2")
    assert [(p.title, p.text) for p in first.paragraphs] == [
        ("Lake Vell", "Lake Vell lies in Ostmark."),
        ("Ostmark", "Ostmark's capital is Brenn."),
    ]
    assert first.question == "What is the capital of the land of Lake Vell?"
    assert first.answer.endswith("So the answer is: Brenn.")
    assert second.paragraphs == ()
    assert second.question == "Answer by reasoning.\nIs Brenn a lake?"


def test_writing_gives_back_the_file(write: Write) -> None:
    assert write_demonstrations(read_demonstrations(write(SOUND))) == SOUND.rstrip()


@given(st.lists(LINES, min_size=1, max_size=4, unique=True), st.data())
def test_what_is_written_reads_as_it_was(ids: list[str], data: st.DataObject) -> None:
    items = []
    for qid in ids:
        shown = data.draw(st.lists(st.tuples(LINES, LINES), max_size=3))
        instruction = data.draw(st.sampled_from(["", "Answer the following question.\n"]))
        items.append(
            Demonstration(
                id=qid,
                paragraphs=tuple(
                    Paragraph(id=f"{qid}/{number}", title=title, text=text)
                    for number, (title, text) in enumerate(shown, start=1)
                ),
                question=f"{instruction}Is {data.draw(LINES)}",
                answer=data.draw(LINES),
            )
        )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "written.txt"
        path.write_bytes(write_demonstrations(Demonstrations(items=tuple(items))).encode())
        assert read_demonstrations(path) == Demonstrations(items=tuple(items))


def test_a_windows_file_means_the_same(write: Write) -> None:
    plain = read_demonstrations(write(SOUND))
    assert read_demonstrations(write(b"\xef\xbb\xbf" + SOUND.replace("\n", "\r\n").encode())) == plain


@each_case(
    ("content", "problem"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("Q: Who?\nA: Me.", "line 1: a demonstration begins"),
        ("Hello\n" + SOUND, "'Hello' stands before the first"),
        ("# METADATA: {'qid': 1}\nQ: Who?\nA: Me.", "line 1: .*expected"),
        ('# METADATA: {"qid": ""}\nQ: Who?\nA: Me.', "line 1: the qid is empty"),
        ('# METADATA: {"qid": "\\u0000"}\nQ: Who?\nA: Me.', "can't be stored"),
        ('\n# METADATA: {"qid": "x"}\nWikipedia Title: T\nText\nA: Me.', "line 2: demonstration x has no line `Q"),
        ('# METADATA: {"qid": "x"}\nQ: Who?\n', "line 2: no line `A"),
        ('# METADATA: {"qid": "x"}\nQ: Who?\nA: \n', "line 3: the answer of demonstration x is empty"),
        ('# METADATA: {"qid": "x"}\nQ: Who?\nA: Me.\nAnd you.', "line 4: .* has more than one line"),
        ('# METADATA: {"qid": "x"}\nText\n\nQ: Who?\nA: Me.', "line 2: 'Text' belongs to no paragraph"),
        ('# METADATA: {"qid": "x"}\nWikipedia Title: T\n\nQ: Who?\nA: Me.', "line 2: a paragraph needs"),
        (SOUND + SOUND, "the qid a1 is there twice"),
        (SOUND + "\0", "line 16: a NUL byte"),
        (SOUND.encode() + b"\xed\xa0\x80", "line 16: not UTF-8"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(write: Write, content: str | bytes, problem: str) -> None:
    with pytest.raises(DemonstrationError, match=rf"demonstrations\.txt.*{problem}"):
        read_demonstrations(write(content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match=r"nowhere\.txt can't be read"):
        read_demonstrations(tmp_path / "nowhere.txt")


def test_the_direct_form_keeps_the_stated_answer_only(write: Write) -> None:
    direct = in_form(read_demonstrations(write(SOUND)), AnswerForm.DIRECT)
    assert [d.answer for d in direct.items] == ["Brenn", "no"]
    assert in_form(direct, AnswerForm.DIRECT) == direct


def test_chains_stay_chains(write: Write) -> None:
    chains = read_demonstrations(write(SOUND))
    assert in_form(chains, AnswerForm.COT) == chains
    assert in_form(Demonstrations(), AnswerForm.COT) == Demonstrations()


def test_answers_alone_are_not_chains(write: Write) -> None:
    direct = in_form(read_demonstrations(write(SOUND)), AnswerForm.DIRECT)
    with pytest.raises(DemonstrationError, match="answers alone"):
        in_form(direct, AnswerForm.COT)


@each_case("form", AnswerForm)
def test_a_mixture_of_forms_is_refused(write: Write, form: AnswerForm) -> None:
    mixed = read_demonstrations(write(SOUND.replace(" So the answer is: no.", "")))
    with pytest.raises(DemonstrationError, match="a2 states no answer"):
        in_form(mixed, form)


@needs_released
@each_case("path", sorted(RELEASED.glob("*/*.txt")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_released_file_is_written_with_its_own_bytes(path: Path) -> None:
    assert write_demonstrations(read_demonstrations(path)).encode() == path.read_bytes()


@needs_released
@each_case("path", sorted(RELEASED.glob("*/*_cot_*.txt")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_released_chains_state_the_released_answers(path: Path) -> None:
    stated = in_form(read_demonstrations(path), AnswerForm.DIRECT)
    released = read_demonstrations(path.with_name(path.name.replace("_cot_", "_direct_")))
    answers = {d.id: d.answer for d in released.items}
    assert {d.id: d.answer for d in stated.items} == answers


@each_case(
    ("sentence", "answer"),
    [
        ("The answer is: X.", "X"),
        ("So the answer is Germany.", "Germany"),
        ("So the answer is: The Operation M.D..", "The Operation M.D."),
        ("He came. So the answer is: a. The answer is: b", "b"),
        ("So the answer is: 3.5.", "3.5"),
        ("Answer is: yes.", None),
        ("So the answer is:Germany.", None),
        ("So the Answer is: yes.", None),
        ("So the answer is: .", None),
        ("So the answer is:", None),
        ("The answers are many.", None),
        ("", None),
    ],
)
def test_an_answer_is_stated_as_the_released_rule_says(sentence: str, answer: str | None) -> None:
    assert stated_answer(sentence) == answer


def test_an_empty_answer_is_stated_where_the_released_code_takes_it() -> None:
    assert stated_answer("So the answer is: .", empty=True) == ""
    assert stated_answer("So the answer is: X.", empty=True) == "X"
    assert stated_answer("So the answer is:", empty=True) is None
