from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(id=f"id of {title}", title=title, text=text)


TULIP = Demonstration(
    id="d1",
    paragraphs=(paragraph("Tulip", "A flower."), paragraph("Ghent", "A town.")),
    question="Is a tulip a flower?",
    answer="A tulip is a flower. So the answer is: yes.",
)
BARE = Demonstration(id="d2", paragraphs=(), question="Is it?", answer="So the answer is: no.")
ITS_FIELDS: dict[str, Any] = {
    "demonstrations": Demonstrations(items=(TULIP, BARE)),
    "paragraphs": (paragraph("Ada", "Ada built a bridge."), paragraph("Rome", "Rome has bridges. ")),
    "question": "Who built it?",
    "sentences": ("A bridge was built.", "Ada built one."),
}
PROMPT = few_shot_prompt(**ITS_FIELDS)

RENDERED = b"""\
Wikipedia Title: Tulip
A flower.

Wikipedia Title: Ghent
A town.

Q: Is a tulip a flower?
A: A tulip is a flower. So the answer is: yes.


Q: Is it?
A: So the answer is: no.


Wikipedia Title: Ada
Ada built a bridge.

Wikipedia Title: Rome
Rome has bridges.

Q: Who built it?
A: A bridge was built. Ada built one."""

TEXTS = st.text("ab \n\t.é", max_size=12)
PARAGRAPHS = st.lists(st.builds(paragraph, TEXTS, TEXTS), max_size=3).map(tuple)
DEMONSTRATIONS = st.lists(
    st.builds(Demonstration, id=TEXTS, paragraphs=PARAGRAPHS, question=TEXTS, answer=TEXTS), max_size=3
).map(lambda items: Demonstrations(items=tuple(items)))
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "demonstrations": DEMONSTRATIONS,
        "paragraphs": PARAGRAPHS,
        "question": TEXTS,
        "sentences": st.lists(TEXTS, max_size=3).map(tuple),
        "max_paragraph_words": st.integers(1, 5),
    }
)


def prompt_of(fields: dict[str, Any]) -> Prompt:
    return few_shot_prompt(**fields)


PROMPTS = FIELDS.map(prompt_of)


def test_a_prompt_is_these_bytes() -> None:
    assert PROMPT.render().encode() == RENDERED
    assert PROMPT.digest == "e61eec193eb23ba51f4b3f50ca0cc3723d6f36a2efcb136f1c73ca261bee6289"


def test_a_prompt_without_demonstrations_paragraphs_and_chain_ends_behind_the_colon() -> None:
    assert few_shot_prompt(demonstrations=Demonstrations(), question="Who?").render() == "Q: Who?\nA:"


@each_case("last", ["It is so. ", "It is so.\n", "It is so.\t \n"])
def test_space_at_the_end_of_the_chain_is_taken_off(last: str) -> None:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question="Who?", sentences=("One.", last))
    assert prompt.render() == "Q: Who?\nA: One. It is so."


def test_a_paragraph_is_cut_to_350_space_separated_words_and_stripped() -> None:
    long = paragraph("Long", " ".join(f"w{n}" for n in range(351)))
    prompt = few_shot_prompt(demonstrations=Demonstrations(), paragraphs=(long,), question="Who?")
    shown = prompt.render().split("\n")[1].split(" ")
    assert (len(shown), shown[-1]) == (350, "w349")


@each_case(
    ("text", "shown"),
    [("one two three", "one two"), ("one  two", "one"), (" one two", "one"), ("one\ttwo three four", "one\ttwo three")],
)
def test_words_are_what_stands_between_single_spaces(text: str, shown: str) -> None:
    prompt = few_shot_prompt(
        demonstrations=Demonstrations(), paragraphs=(paragraph("T", text),), question="Who?", max_paragraph_words=2
    )
    assert prompt.render() == f"Wikipedia Title: T\n{shown}\n\nQ: Who?\nA:"


def test_paragraphs_of_demonstrations_are_not_cut() -> None:
    long = " ".join(["word"] * 400)
    shown = Demonstration(id="d", paragraphs=(paragraph("T", long),), question="Is it?", answer="yes")
    prompt = few_shot_prompt(demonstrations=Demonstrations(items=(shown,)), question="Who?")
    assert long in prompt.render()


@given(PROMPTS)
def test_the_digest_is_that_of_the_rendered_text(prompt: Prompt) -> None:
    assert prompt.digest == sha256(prompt.render().encode()).hexdigest()
    assert prompt.demonstrations.digest == sha256(prompt.demonstrations.text.encode()).hexdigest()


@given(PROMPTS)
def test_the_demonstrations_are_the_beginning_of_every_prompt(prompt: Prompt) -> None:
    assert prompt.render().startswith(prompt.shared)


@given(FIELDS, TEXTS)
def test_a_longer_chain_leaves_what_stands_before_it(fields: dict[str, Any], sentence: str) -> None:
    longer = few_shot_prompt(**fields | {"sentences": (*fields["sentences"], sentence)})
    assert longer.render().startswith(few_shot_prompt(**fields).render())


@given(FIELDS, st.integers(0, 4), st.integers(0, 4))
def test_parts_are_kept_from_the_front(fields: dict[str, Any], demonstrations: int, paragraphs: int) -> None:
    prompt = few_shot_prompt(**fields)
    before = prompt.digest
    kept = prompt.keep(demonstrations, paragraphs)
    fewer = Demonstrations(items=fields["demonstrations"].items[:demonstrations])
    assert kept == few_shot_prompt(
        **fields | {"demonstrations": fewer, "paragraphs": fields["paragraphs"][:paragraphs]}
    )
    assert kept.digest == sha256(kept.render().encode()).hexdigest()
    assert prompt.digest == before


@given(PROMPTS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
def test_demonstrations_are_kept_from_any_place(prompt: Prompt, first: int, demonstrations: int, again: int) -> None:
    kept = prompt.keep(demonstrations, len(prompt.paragraphs), first)
    assert kept.demonstrations.items == prompt.demonstrations.items[first : first + demonstrations]
    assert kept.first_demonstration == (first if kept.demonstrations.items else 0)
    twice = kept.keep(4, len(prompt.paragraphs), again)
    if twice.demonstrations.items:
        assert prompt.demonstrations.items[twice.first_demonstration] == twice.demonstrations.items[0]


def test_what_was_left_out_before_shows_nowhere_in_the_text() -> None:
    kept = PROMPT.keep(1, 2, 1)
    assert kept.first_demonstration == 1
    assert kept.render() == few_shot_prompt(**ITS_FIELDS | {"demonstrations": Demonstrations(items=(BARE,))}).render()


def test_keeping_everything_keeps_every_byte() -> None:
    assert PROMPT.keep(2, 2).render() == PROMPT.render()
    assert PROMPT.keep(0, 0).render() == "Q: Who built it?\nA: A bridge was built. Ada built one."


def test_a_paragraph_without_a_title_is_shown_as_its_text() -> None:
    told = Paragraph(id="", title="", text="It died in 322 BC. It lived.")
    prompt = few_shot_prompt(demonstrations=Demonstrations(), paragraphs=(told,), question="When?")
    assert prompt.render() == "It died in 322 BC. It lived.\n\nQ: When?\nA:"
