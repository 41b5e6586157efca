"""Agents of the literature as systems: each is a short generator, whose prompts are what its paper shows a model."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Finished
from cotrail.core.prompts import Asked, Prompt, Shown, Turn, plain, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated, Retrieved
from cotrail.core.system import Answer, System, expect
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.systems.parts.steps import in_parallel
from tests.cases import each_case
from tests.replay.driving import MadeUp, live, replayed
from tests.unit.test_encoding import reopened

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
HISTORY = Paragraph(id="2", title="Brenn", text="Ada founded it. Ada left.")
VELL = Paragraph(id="3", title="Vell", text="It ends in the Amber Sea.")
MOST_STEPS = 4

# Self-Ask (Press et al., 2022), whose system is in cotrail/systems/decomposition.py

FOLLOW_UP, INTERMEDIATE, FINAL = "Follow up:", "\nIntermediate answer:", "So the final answer is:"


def self_ask(question: Question, examples: str = "", sample: int | None = None) -> System:
    """Have the model ask itself, and a search answer in its place."""
    asked = Asked(question.text, "Question: {question}\nAre follow up questions needed here:")
    prompt = Prompt(turns=(plain(examples, asked),))
    read: tuple[Paragraph, ...] = ()
    said = ""
    for _ in range(MOST_STEPS):
        step = Reason(prompt=prompt, max_tokens=60, until="stop", stop=(INTERMEDIATE, "\nQuestion:"), sample=sample)
        written = expect((yield step), Generated)
        said = written.text
        query = said.rpartition(FOLLOW_UP)[2].strip()
        if written.stop != INTERMEDIATE or not query:
            break
        found = expect((yield Retrieve(query=query, count=1)), Retrieved).paragraphs
        read += found
        shown = [Shown(paragraph=each, form=" {text}") for each in found]
        prompt = prompt.wrote(said).append(INTERMEDIATE, *shown, "\n")
    return Answer(text=said.partition(FINAL)[2].strip(), paragraphs=read)


# Search-R1 (Jin et al., 2025), R1-Searcher (Song et al., 2025), ReSearch (Chen et al., 2025)


class Tags(Struct, frozen=True):
    """What stands around a query, around what was found, and around the answer."""

    query: tuple[str, str]
    found: tuple[str, str]
    answer: tuple[str, str] = ("<answer>", "</answer>")


TAGS = {
    "search-r1": Tags(("<search>", "</search>"), ("\n\n<information>", "</information>\n\n")),
    "r1-searcher": Tags(
        ("<|begin_of_query|>", "<|end_of_query|>"), ("\n\n<|begin_of_documents|>\n", "<|end_of_documents|>\n\n")
    ),
    "research": Tags(("<search>", "</search>"), (" <result>\n", "\n</result> ")),
}


def tag_agent(question: Question, tags: Tags, opening: tuple[Turn, ...] = ()) -> System:
    """Have the model write one message, into which searches put what they find; opening: how that begins."""
    prompt = Prompt(turns=(user("Search where you lack knowledge. Question: ", Asked(question.text)), *opening))
    (opened, closed), (before, behind) = tags.query, tags.found
    read: tuple[Paragraph, ...] = ()
    said = ""
    for number in range(MOST_STEPS):
        step = Reason(prompt=prompt, max_tokens=100, until="stop", stop=(closed, tags.answer[1]))
        written = expect((yield step), Generated)
        said = written.text
        prompt = prompt.wrote(said + written.stop)
        _, is_open, query = prompt.turns[-1].text.removesuffix(closed).rpartition(opened)
        if written.stop != closed or not is_open:
            break
        found = expect((yield Retrieve(query=query.strip(), count=2)), Retrieved).paragraphs
        read += found
        yields = MOST_STEPS - number
        shown = [
            Shown(paragraph=each, form=f"Doc {rank}(Title: {{title}}) {{text}}\n", yields=yields)
            for rank, each in enumerate(found, start=1)
        ]
        prompt = prompt.append(before, *shown, behind)
    return Answer(text=said.partition(tags.answer[0])[2].strip(), paragraphs=read)


# Chains side by side, and a vote (Wang et al., 2022)


def vote(question: Question, samples: int) -> System:
    """Have several chains ask themselves, and take the answer that most of them give."""
    answers = yield from in_parallel(self_ask(question, sample=sample) for sample in range(samples))
    votes = Counter(each.text for each in answers if each.text)
    return Answer(text=max(votes, key=votes.__getitem__, default=""))


# What they do

FOUND = {"Which river flows through Brenn?": (BRENN,), "Where does the Vell end?": (VELL,)}
ASKED_RIVER = " Yes.\nFollow up: Which river flows through Brenn?"
ASKED_SEA = "Follow up: Where does the Vell end?"


def ran(
    system: Callable[[], System], script: Mapping[str, Any], found: Mapping[str, tuple[Paragraph, ...]] = FOUND
) -> tuple[Answer, list[str]]:
    """The answer and the prompts of a system under a script.

    It is the same in the driver, and all that it asks for is read back as it was written down.
    """
    world = MadeUp(ScriptedModel({"name": "agent", "questions": {QUESTION.text: script}}), found)
    trace, end = live(system(), world)
    assert replayed(system, world) == (trace, end)
    assert [reopened(action) for action, _ in trace] == [action for action, _ in trace]
    assert isinstance(end, Finished)
    return end.answer, [action.prompt.render() for action, _ in trace if isinstance(action, Reason)]


def messages(prompt: str) -> list[dict[str, Any]]:
    return msgspec.json.decode(prompt)["messages"]  # type: ignore[no-any-return]


@each_case("tags", TAGS.values(), ids=TAGS)
def test_a_message_goes_on_behind_what_was_found(tags: Tags) -> None:
    (opened, closed), (before, behind), (stated, concluded) = tags.query, tags.found, tags.answer
    said = [
        f"I search. {opened} Where does the Vell end? {closed} and more",
        f"Now I know. {stated} Amber Sea {concluded}",
    ]
    answer, prompts = ran(lambda: tag_agent(QUESTION, tags), {"answer": "", "messages": said})
    asked = {"role": "user", "content": f"Search where you lack knowledge. Question: {QUESTION.text}"}
    told = f"{before}Doc 1(Title: Vell) It ends in the Amber Sea.\n{behind}"
    going_on = f"I search. {opened} Where does the Vell end? {closed}{told}"
    assert list(map(messages, prompts)) == [[asked], [asked, {"role": "assistant", "content": going_on}]]
    assert (answer.text, answer.paragraphs) == ("Amber Sea", (VELL,))


def test_chains_side_by_side_vote_and_one_without_an_answer_does_not() -> None:
    samples = [
        [f"{ASKED_RIVER}{INTERMEDIATE}", f"{FINAL} Amber Sea"],
        [f" No.\n{FINAL} Black Sea"],
        [f"{ASKED_RIVER}{INTERMEDIATE}", f"{ASKED_SEA}{INTERMEDIATE}", f"{FINAL} Amber Sea"],
        [" No."],
    ]
    answer, prompts = ran(lambda: vote(QUESTION, 4), {"answer": "", "samples": samples})
    assert (answer.text, len(prompts)) == ("Amber Sea", 7)
