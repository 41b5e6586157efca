"""Questions about a passage (IIRC), held against appendix B of the IRCoT paper, and the answer without a reader."""

import json
import re
from typing import Any, Literal

from cotrail.core.actions.generate import READ, Read, Reason
from cotrail.core.actions.registry import fingerprint
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations, Stored
from cotrail.core.prompts import Prompt
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import Answer
from cotrail.systems.ircot import IRCoTSettings, NoRetrievalSettings, OneStepSettings, ircot, no_retrieval, one_step
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.parts.retrieval import PageSettings, RetrievalSettings
from tests.cases import each_case
from tests.unit.test_systems import PEOPLE, QUESTION, SHOTS, Hand, chain, found, wrote

PASSAGE = GoldParagraph(title="Ada", text="Ada went to school in Wend and built the Long Bridge.")
ABOUT = Question(id="q2", text="How old is the town of her school?", pinned=PASSAGE)
PINNED = Paragraph(id="", title=PASSAGE.title, text=PASSAGE.text).digest
WEND = Paragraph(id="w", title="Wend", text="Wend is a town.")


def asked_titles(hand: Hand) -> list[tuple[str, tuple[str, ...]]]:
    return [(action.query, action.titles) for action in hand.asked if isinstance(action, Retrieve)]


def test_the_pages_are_named_first_and_later_searches_keep_to_them() -> None:
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings()))
    assert isinstance(hand.last, Reason)
    assert (hand.last.until, hand.last.prompt.demonstrations) == ("line", SHOTS[AnswerForm.TITLES])
    assert [paragraph.digest for paragraph in hand.last.prompt.paragraphs] == [PINNED]
    assert hand.last.prompt.question == (
        "The question is: 'How old is the town of her school?'. Generate titles of 3 Wikipedia pages that have "
        "relevant information to answer this question."
    )
    hand.reply(wrote('["Wend (town)", "Long Bridge"]'))
    assert hand.asked[1:] == [Retrieve(query=t, count=1, field="title") for t in ("Wend (town)", "Long Bridge")]
    hand.reply((found(WEND), found(WEND)), found(WEND), wrote("Wend is old."), found(), wrote("So the answer is: 9."))
    assert {titles for _, titles in asked_titles(hand)[2:]} == {("Wend",)}
    assert hand.shape == ["Reason", "Retrieve", "Retrieve", "Retrieve", "Reason", "Retrieve", "Reason", "Read"]


def test_ircot_collects_the_passage_first_and_it_takes_one_of_the_places() -> None:
    settings = IRCoTSettings(retrieval=RetrievalSettings(max_paragraphs=3))
    hand = Hand(ircot(ABOUT, SHOTS, settings))
    hand.reply(wrote("Wend"), (found(WEND),), found(*PEOPLE[:3]), wrote("So the answer is: 9."))
    answer = hand.reply(wrote("9"))
    assert answer is not None
    assert [paragraph.digest for paragraph in answer.paragraphs] == [PINNED, PEOPLE[0].digest, PEOPLE[1].digest]
    assert hand.read.prompt.paragraphs == answer.paragraphs


def test_one_step_retrieval_shows_the_passage_on_top_and_does_not_collect_it() -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings()))
    hand.reply(wrote("Wend"), (found(WEND),), found(*PEOPLE[:2]))
    assert [paragraph.digest for paragraph in hand.read.prompt.paragraphs] == [PINNED, *(p.digest for p in PEOPLE[:2])]
    assert hand.reply(wrote("9")) == Answer(text="9", paragraphs=PEOPLE[:2])


def test_without_retrieval_the_passage_is_all_there_is() -> None:
    hand = Hand(no_retrieval(ABOUT, SHOTS, NoRetrievalSettings()))
    assert [paragraph.digest for paragraph in hand.read.prompt.paragraphs] == [PINNED]


@each_case("written", ["[]", '""', " , "])
def test_where_no_page_is_named_the_whole_corpus_is_searched(written: str) -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings()))
    hand.reply(wrote(written))
    assert isinstance(hand.last, Retrieve)
    assert (hand.last.titles, hand.last.scope, hand.last.field) == ((), "only", "all")


@each_case("recorded_before", [False, True])
def test_where_the_model_names_nothing_at_all_the_whole_corpus_is_searched(*, recorded_before: bool) -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings()))
    if recorded_before:
        hand.fail("EmptyGenerationError")
    else:
        hand.reply(wrote(""))
    assert isinstance(hand.last, Retrieve)
    assert hand.last.titles == ()


@each_case(("titles", "looked_up"), [("all", ["One", "Two", "Three"]), ("asked", ["One", "Two"])])
def test_all_pages_that_the_model_names_are_looked_up_however_many_were_asked_for(
    titles: Literal["all", "asked"], looked_up: list[str]
) -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(pages=PageSettings(count=2, titles=titles))))
    hand.reply(wrote('["One", "Two", "Three"]'))
    assert [query for query, _ in asked_titles(hand)] == looked_up


def test_no_more_than_fifteen_pages_are_searched() -> None:
    pages = [Paragraph(id=f"p{n}", title=f"Page {n % 18}", text="A page.") for n in range(20)]
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings()))
    hand.reply(wrote(json.dumps([page.title for page in pages])), tuple(found(page) for page in pages[:18]))
    assert isinstance(hand.last, Retrieve)
    assert hand.last.titles == tuple(page.title for page in pages[:15])


RELEASED = PageSettings(found="released")
LONG = Paragraph(id="l", title="Long", text="word " * 600 + "word")


@each_case(("pages", "searched"), [(RELEASED, ("Wend",)), (PageSettings(), ("Wend", "Long"))])
def test_by_the_released_code_a_page_that_begins_too_long_is_not_searched(
    pages: PageSettings, searched: tuple[str, ...]
) -> None:
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings(pages=pages)))
    hand.reply(wrote('["Wend", "Long", "Wend"]'), (found(WEND), found(LONG)))
    assert isinstance(hand.last, Retrieve)
    assert hand.last.titles == searched


@each_case("looked_up", [(wrote(""),), (wrote("x"), (found(),)), (wrote("x"), (found(LONG),))])
def test_by_the_released_code_nothing_is_searched_where_no_page_is_left(looked_up: tuple[Any, ...]) -> None:
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings(pages=RELEASED)))
    hand.reply(*looked_up, wrote("Wend is old."), wrote("So the answer is: 9."))
    answer = hand.reply(wrote("9"))
    assert answer is not None
    assert [paragraph.digest for paragraph in answer.paragraphs] == [PINNED]
    assert {action.field for action in hand.asked if isinstance(action, Retrieve)} <= {"title"}
    one = Hand(one_step(ABOUT, SHOTS, OneStepSettings(pages=RELEASED)))
    one.reply(*looked_up)
    assert [paragraph.digest for paragraph in one.read.prompt.paragraphs] == [PINNED]


def test_a_paragraph_of_as_many_words_as_are_allowed_keeps_its_page() -> None:
    limit = Paragraph(id="l", title="Long", text="word " * 599 + "word")
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(pages=RELEASED)))
    hand.reply(wrote("Long"), (found(limit),))
    assert isinstance(hand.last, Retrieve)
    assert hand.last.titles == ("Long",)


def test_a_question_without_a_passage_searches_the_whole_corpus_by_either_rule() -> None:
    hand = Hand(one_step(QUESTION, SHOTS, OneStepSettings(pages=RELEASED)))
    assert isinstance(hand.last, Retrieve)
    assert hand.last.titles == ()


# Where the passage stands


@each_case(("pinned", "place"), [("top", 0), ("bottom", -1)])
def test_the_passage_stands_first_or_last_in_every_prompt(pinned: Literal["top", "bottom"], place: int) -> None:
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings(prompting=PromptSettings(pinned=pinned))))
    hand.reply(wrote("Wend"), (found(WEND),), found(WEND), wrote("Wend is old."), found(*PEOPLE[:1]))
    answer = hand.reply(wrote("So the answer is: 9."), wrote("9"))
    prompts = [action.prompt for action in hand.asked if isinstance(action, Reason | Read)]
    assert [titles_in(prompt)[place] for prompt in prompts] == ["Ada"] * 4
    assert [len(titles_in(prompt)) for prompt in prompts] == [1, 2, 3, 3]
    assert answer is not None
    assert answer.paragraphs[0].digest == PINNED


@each_case(("pinned", "titles"), [("top", ["Ada", "Wend"]), ("bottom", ["Wend", "Ada"])])
def test_one_step_retrieval_shows_the_passage_first_or_last(
    pinned: Literal["top", "bottom"], titles: list[str]
) -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(prompting=PromptSettings(pinned=pinned))))
    hand.reply(wrote("Wend"), (found(WEND),), found(WEND))
    assert titles_in(hand.read.prompt) == titles


def test_a_question_without_a_passage_has_its_paragraphs_in_the_order_collected() -> None:
    hand = Hand(one_step(QUESTION, SHOTS, OneStepSettings(prompting=PromptSettings(pinned="bottom"))))
    hand.reply(found(*PEOPLE[:3]))
    assert titles_in(hand.read.prompt) == [person.title for person in PEOPLE[:3]]


def test_a_passage_that_stands_last_is_the_last_to_be_left_out() -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(prompting=PromptSettings(pinned="bottom"))))
    hand.reply(wrote("Wend"), (found(WEND),), found(WEND, *PEOPLE[:2]))
    kept = hand.read.prompt.keep(0, 2)
    assert titles_in(kept) == ["Wend", "Ada"]
    assert titles_in(kept.keep(0, 1)) == ["Ada"]


def test_where_the_passage_stands_decides_the_result() -> None:
    binding = Binding(model="m", profile="fast", temperature=0, seed=0)
    assert len({fingerprint(reading(pinned_last=last), binding) for last in (False, True)}) == 2


def test_where_the_passage_stands_is_stored() -> None:
    moved = reading(pinned_last=True)
    stored = Stored({each.digest: each for each in PEOPLE}, lambda _: Demonstrations())
    assert READ.read(READ.request(moved), stored) == moved


def reading(*, pinned_last: bool) -> Read:
    prompt = few_shot_prompt(
        demonstrations=Demonstrations(), paragraphs=PEOPLE[:2], question="?", pinned_last=pinned_last
    )
    return Read(prompt=prompt, max_tokens=1)


def titles_in(prompt: Prompt) -> list[str]:
    """The titles of the paragraphs behind the demonstrations, as they stand in the text."""
    own = prompt.render().removeprefix(prompt.demonstrations.text)
    return re.findall(r"^Wikipedia Title: (.*)$", own, re.MULTILINE)


# The passage in the corpus

COPY = Paragraph(id="a1", title="ada", text=PASSAGE.text)
"""The passage as IIRC's corpus has it, its title in lower case."""


@each_case(("pinned", "times"), [("once", 1), ("again", 2)])
def test_a_passage_that_the_corpus_holds_too_is_shown_once(pinned: Literal["once", "again"], times: int) -> None:
    retrieval = RetrievalSettings(pinned=pinned)
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(retrieval=retrieval)))
    hand.reply(wrote("Ada"), (found(COPY),), found(COPY, WEND))
    assert [title.lower() for title in titles_in(hand.read.prompt)].count("ada") == times
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings(retrieval=retrieval)))
    answer = hand.reply(wrote("Ada"), (found(COPY),), found(WEND), wrote("Wend is old."), found(COPY))
    answer = hand.reply(wrote("So the answer is: 9."), wrote("9"))
    assert answer is not None
    assert [paragraph.title.lower() for paragraph in answer.paragraphs].count("ada") == times


@each_case(("pinned", "titles"), [("top", ["Wend", "ada"]), ("bottom", ["Wend", "Ada"])])
def test_by_the_released_rules_what_one_step_retrieval_collected_stands_for_the_passage(
    pinned: Literal["top", "bottom"], titles: list[str]
) -> None:
    retrieval, prompting = RetrievalSettings(pinned="released"), PromptSettings(pinned=pinned)
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(retrieval=retrieval, prompting=prompting)))
    hand.reply(wrote("Ada"), (found(COPY),), found(WEND, COPY))
    assert titles_in(hand.read.prompt) == titles


def test_other_paragraphs_of_the_passage_s_page_are_collected() -> None:
    other = Paragraph(id="a2", title="ada", text="Ada later moved to Orsund, where she kept bees.")
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings()))
    hand.reply(wrote("Ada"), (found(other),), found(other))
    assert titles_in(hand.read.prompt) == ["Ada", "ada"]


def test_the_scope_is_the_setting_s() -> None:
    hand = Hand(one_step(ABOUT, SHOTS, OneStepSettings(pages=PageSettings(scope="after"))))
    hand.reply(wrote("Wend"), (found(WEND),))
    assert isinstance(hand.last, Retrieve)
    assert (hand.last.titles, hand.last.scope) == (("Wend",), "after")


def test_without_title_demonstrations_the_bare_question_is_asked() -> None:
    shots = dict(SHOTS)
    del shots[AnswerForm.TITLES]
    hand = Hand(one_step(ABOUT, shots, OneStepSettings()))
    assert isinstance(hand.last, Reason)
    assert hand.last.prompt.render().startswith("Wikipedia Title: Ada\nAda went")


# Without a reader


def test_the_chain_s_own_answer_ends_ircot_without_a_reader() -> None:
    hand = Hand(ircot(QUESTION, SHOTS, IRCoTSettings(reading=ReaderSettings(reader="none"))))
    answer = hand.reply(*chain("Ada built it.", "So the answer is: Rome."))
    assert answer == Answer(text="Rome", sentences=("Ada built it.", "So the answer is: Rome."))
    assert "Read" not in hand.shape


def test_a_chain_that_states_nothing_is_the_answer_as_a_whole() -> None:
    settings = IRCoTSettings(reading=ReaderSettings(reader="none"), max_sentences=2)
    hand = Hand(ircot(QUESTION, SHOTS, settings))
    answer = hand.reply(*chain("Ada built it.", "It is long."))
    assert answer is not None
    assert answer.text == "Ada built it. It is long."


def test_one_step_retrieval_without_a_reader_only_collects() -> None:
    hand = Hand(one_step(QUESTION, SHOTS, OneStepSettings(reading=ReaderSettings(reader="none"))))
    assert hand.reply(found(*PEOPLE[:2])) == Answer(text="", paragraphs=PEOPLE[:2])


# Instructions (Flan-T5), and the released rules

FLAN = {
    AnswerForm.COT: "Answer the following question by reasoning step-by-step.",
    AnswerForm.DIRECT: "Answer the following question.",
    AnswerForm.TITLES: "Answer the following question.",
}
FLAN_SHOTS = {
    form: Demonstrations(items=(Demonstration(id=form, paragraphs=(), question=f"{line}\nIs it?", answer=form),))
    for form, line in FLAN.items()
}


def test_a_question_is_asked_with_the_demonstrations_instruction() -> None:
    hand = Hand(ircot(QUESTION, FLAN_SHOTS, IRCoTSettings(reading=ReaderSettings(reader="cot"))))
    hand.reply(found(), wrote("So the answer is: Rome."))
    prompts = [action.prompt.question for action in hand.asked if isinstance(action, Reason | Read)]
    assert prompts == [f"{FLAN[AnswerForm.COT]}\n{QUESTION.text}"] * 2


def test_the_released_reader_always_has_the_short_instruction() -> None:
    reading = ReaderSettings(reader="cot", instruction="released")
    hand = Hand(no_retrieval(QUESTION, FLAN_SHOTS, NoRetrievalSettings(reading=reading)))
    assert hand.read.prompt.question == f"Answer the following question.\n{QUESTION.text}"
    hand = Hand(no_retrieval(QUESTION, SHOTS, NoRetrievalSettings(reading=reading)))
    assert hand.read.prompt.question == QUESTION.text


def test_prompts_say_which_demonstrations_go_first() -> None:
    hand = Hand(ircot(ABOUT, SHOTS, IRCoTSettings(prompting=PromptSettings(drop="released"))))
    hand.reply(wrote("Wend"), (found(WEND),), found(), wrote("So the answer is: 9."))
    assert {action.prompt.drop for action in hand.asked if isinstance(action, Reason | Read)} == {"released"}


@each_case(("duplicates", "kept"), [("alike", 3), ("released", 2)])
def test_the_released_code_takes_one_s_title_and_another_s_text_for_a_duplicate(duplicates: str, kept: int) -> None:
    mixed = Paragraph(id="m", title=PEOPLE[0].title, text=PEOPLE[1].text)
    settings = OneStepSettings(retrieval=RetrievalSettings(duplicates=duplicates))  # type: ignore[arg-type]
    hand = Hand(one_step(QUESTION, SHOTS, settings))
    hand.reply(found(PEOPLE[0], PEOPLE[1], mixed))
    assert len(hand.read.prompt.paragraphs) == kept
