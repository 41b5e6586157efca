"""ReAct: thoughts and actions in turn, until an action gives the answer (Yao et al., 2023, section 3)."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Shown, Text, Written, plain
from cotrail.core.questions import Paragraph, Question, passage_of
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.answers import behind, lines
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import query_words
from cotrail.systems.parts.steps import text_of, texts_before, texts_of, until_stop
from cotrail.systems.spec import Needs, SystemSpec, always, description

# The environment in which ReAct acts: pages that are opened and looked through (Yao et al., 2023, section 3.1).

ACTIONS = ("search", "lookup", "finish", "think")


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages that are opened by their titles."""

    similar: Positive = 5
    """The most titles that are listed where there is no page of the title searched for."""

    sentences: Positive = 5
    """The sentences of an opened page that are shown."""

    observation_words: Positive = 350
    """What is shown of a page is cut to this many words."""

    corpus: str = ""
    """Which of the run's corpora has the pages; the first unless given."""


class Page(Struct, frozen=True, kw_only=True):
    """The open page, and how far it has been looked through.

    keyword: what was looked up last, None where nothing was; results_shown: how many sentences with it have been shown.
    """

    title: str = ""
    sentences: tuple[str, ...] = ()
    keyword: str | None = None
    results_shown: int = 0


class Observation(Struct, frozen=True, kw_only=True):
    """What an action shows, and the page that is open then.

    quoted: whether the text is the page's own; paragraphs: those that were opened.
    """

    text: str
    page: Page
    quoted: bool = False
    paragraphs: tuple[Paragraph, ...] = ()

    def piece(self, words: int, yields: int) -> Text | Shown:
        """The observation in a prompt; words: what is the page's is cut to so many; yields: see `Text`."""
        if not self.quoted:
            return Text(self.text, yields=yields)
        passage = passage_of(self.text, self.page.title)
        return Shown(paragraph=passage, form="{text}", words=words, yields=yields)


def parsed(action: str) -> tuple[str, str]:
    """An action's name and argument; where it is none that there is, an empty name and all of its text.

    The first letter may be a capital, and the closing bracket is the text's last character.
    """
    said = action.strip()
    said = said[:1].lower() + said[1:]
    for name in ACTIONS:
        if said.startswith(f"{name}[") and said.endswith("]"):
            return name, said[len(name) + 1 : -1]
    return "", said


def observed(name: str, argument: str, page: Page, settings: PageSettings) -> Part[Observation]:
    """Carry out an action other than `finish`."""
    match name:
        case "search":
            return (yield from searched(argument, page, settings))
        case "lookup":
            return looked_up(argument, page)
        case "think":
            return Observation(text="Nice thought.", page=page)
    return Observation(text=f"Invalid action: {argument}", page=page)


def searched(entity: str, page: Page, settings: PageSettings) -> Part[Observation]:
    """Open the page of this title; where there is none, the former page stays open and similar titles are listed."""
    title = query_words(entity)
    similar: tuple[str, ...] = ()
    found = yield from opened(title, settings)
    if not found:
        similar = yield from similar_titles(title, settings)
        # A page is found whatever the case of its title, as Wikipedia finds it.
        found = yield from opened(next((each for each in similar if each.lower() == title.lower()), ""), settings)
    if not found:
        return Observation(text=f"Could not find {entity}. Similar: {list(similar)}.", page=page)
    sentences = sentences_of(found)
    begins = " ".join(sentences[: settings.sentences])
    return Observation(text=begins, page=Page(title=found[0].title, sentences=sentences), quoted=True, paragraphs=found)


def opened(title: str, settings: PageSettings) -> Part[tuple[Paragraph, ...]]:
    """The paragraphs of exactly this title; none without one."""
    if not title:
        return ()
    return expect((yield Open(title=title, corpus=settings.corpus)), Retrieved).paragraphs


def similar_titles(title: str, settings: PageSettings) -> Part[tuple[str, ...]]:
    """The titles most like this one, the best first."""
    if not title:
        return ()
    search = Retrieve(query=title, count=settings.similar, field="title", corpus=settings.corpus)
    found = expect((yield search), Retrieved).paragraphs
    return tuple(dict.fromkeys(each.title for each in found))


def sentences_of(page: tuple[Paragraph, ...]) -> tuple[str, ...]:
    """The sentences of a page as the authors' environment has them: what stands between ". ", and a full stop."""
    lines = (line for paragraph in page for line in paragraph.text.splitlines())
    return tuple(f"{each.strip()}." for line in lines for each in line.strip().split(". ") if each.strip())


def looked_up(keyword: str, page: Page) -> Observation:
    """The next sentence of the open page that has the keyword, in whatever case."""
    results_shown = page.results_shown if keyword == page.keyword else 0
    results = [each for each in page.sentences if keyword.lower() in each.lower()]
    looked_through = replace(page, keyword=keyword, results_shown=min(results_shown + 1, len(results)))
    if results_shown >= len(results):
        return Observation(text="No more results.\n", page=looked_through)
    text = f"(Result {results_shown + 1} / {len(results)}) {results[results_shown]}"
    return Observation(text=text, page=looked_through, quoted=True)


OWN = own_words("react")

STEPS = "steps"
"""The limit of an answer that no step gave."""


class ReActSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReAct."""

    pages: PageSettings = PageSettings()

    steps: Positive = 7
    """The most steps. The paper has 7 for HotpotQA and 5 for FEVER."""

    max_tokens: Positive = 100
    """The most tokens of a thought and its action."""

    temperature: Temperature = 0.0
    """The temperature of thoughts and actions."""


def react(question: Question, shots: Shots, settings: ReActSettings) -> System:
    """Have the model think and act in turn: search for a page, look a word up in it, or finish."""
    prompt = opening(question, shots)
    page = Page()
    thoughts: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited(STEPS) as end:
        for number in range(1, settings.steps + 1):
            thought, action = yield from think_and_act(prompt, number, settings)
            thoughts += (thought,)
            name, argument = parsed(action)
            if name == "finish":
                return Answer(text=argument.strip(), sentences=thoughts, paragraphs=paragraphs)
            seen = yield from observed(name, argument, page, settings.pages)
            page, paragraphs = seen.page, tuple(dict.fromkeys((*paragraphs, *seen.paragraphs)))
            # The last observations stay longest where not all fit.
            shown = seen.piece(settings.pages.observation_words, yields=settings.steps - number + 1)
            prompt = acted(prompt, number, thought, action).append(f"\nObservation {number}: ", shown, "\n")
    return Answer(text="", sentences=thoughts, paragraphs=paragraphs, limit=end.limit)


def opening(question: Question, shots: Shots) -> Prompt:
    """What may be done, the examples and the question."""
    examples = chosen_words(shots, OWN, "examples")
    words = worded(shots, OWN, "act", examples=examples, question=Asked(question.text))
    return Prompt(turns=(plain(*words, "\n"),))


def think_and_act(prompt: Prompt, number: int, settings: ReActSettings) -> Part[tuple[str, str]]:
    """The thought and the action of a step; where a text has no single action, the model is asked for that alone."""
    said = yield from write(prompt.append(f"Thought {number}:"), f"\nObservation {number}:", settings)
    match said.split(f"\nAction {number}: "):
        case [thought, action]:
            return thought, action
    thought = said.partition("\n")[0]
    action = yield from write(acted(prompt, number, thought), "\n", settings)
    return thought, action


def write(prompt: Prompt, stop: str, settings: ReActSettings) -> Part[str]:
    """What the model writes before a string, stripped."""
    return (yield from text_of(until_stop(prompt, (stop,), settings))).strip()


def acted(prompt: Prompt, number: int, thought: str, action: str | None = None) -> Prompt:
    """The prompt with a thought, and with its action or, where the model is to write that, its beginning."""
    thinking = prompt.append(f"Thought {number}: ", Written(thought), f"\nAction {number}:")
    return thinking if action is None else thinking.append(" ", Written(action))


def step_bounds(question: Question, settings: ReActSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: at worst the model is asked for each action alone, and no title is written as its page's."""
    steps = settings.steps
    words = words_in(OWN) + steps * (2 * settings.max_tokens + settings.pages.observation_words)
    return (
        StepBound(kind="reason", times=2 * steps, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT),
        StepBound(kind="open", times=2 * steps),
        StepBound(kind="retrieve", times=steps),
    )


SPEC = SystemSpec(
    **description("react"),
    settings=ReActSettings,
    open=react,
    needs=always(Needs(words=OWN, corpus=True)),
    step_bounds=step_bounds,
)


# ReAct and self-consistency, one where the other fails: ReAct → CoT-SC and CoT-SC → ReAct (Yao et al., 2023, 3.2).

CHAINS = own_words("react_chains")
ALL_WORDS: Mapping[str, str] = dict(sorted({**OWN, **CHAINS}.items()))


class BackOffSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReAct and self-consistency."""

    react: ReActSettings = ReActSettings()

    chains: Annotated[int, Meta(ge=1, le=100)] = 21
    """The chains of thought that vote (n)."""

    temperature: Temperature = 0.7
    """The temperature at which chains are sampled."""

    max_chain_tokens: Positive = 256
    """The most tokens of a chain."""


def react_self_consistency(question: Question, shots: Shots, settings: BackOffSettings) -> System:
    """Have ReAct answer, and where none of its steps does, the majority of chains of thought."""
    acted = yield from react(question, shots, settings.react)
    if acted.text or acted.limit not in ("", STEPS):
        return acted
    with Limited() as end:
        chains = yield from sampled_chains(question, shots, settings)
        return voted(chains, acted.paragraphs)
    return voted(texts_before(end), acted.paragraphs, end.limit)


def self_consistency_react(question: Question, shots: Shots, settings: BackOffSettings) -> System:
    """Have the majority of chains of thought answer, and where fewer than half of them agree, ReAct."""
    with Limited() as end:
        chains = yield from sampled_chains(question, shots, settings)
    if end.limit:
        return voted(texts_before(end), limit=end.limit)
    votes = votes_of(chains)
    if votes.agree:
        return voted(chains)
    acted = yield from react(question, shots, settings.react)
    return replace(acted, details=votes) if acted.text else voted(chains, acted.paragraphs, acted.limit)


def sampled_chains(question: Question, shots: Shots, settings: BackOffSettings) -> Part[tuple[str, ...]]:
    """Chains of thought that are sampled without any search."""
    examples = chosen_words(shots, CHAINS, "chain_examples")
    words = worded(shots, CHAINS, "chain", chain_examples=examples, question=Asked(question.text))
    reason = Reason(
        prompt=Prompt(turns=(plain(*words),)),
        max_tokens=settings.max_chain_tokens,
        until="stop",
        stop=("\nQuestion:",),
        temperature=settings.temperature,
    )
    return (yield from texts_of(replace(reason, sample=number) for number in range(settings.chains)))


def votes_of(chains: tuple[str, ...]) -> Votes:
    """The vote of these chains."""
    return majority(behind(chain, "\nAnswer:") or "" for chain in chains)


def voted(chains: tuple[str, ...], paragraphs: tuple[Paragraph, ...] = (), limit: str = "") -> Answer:
    """The answer that most of the chains have, with the first chain that has it."""
    votes = votes_of(chains)
    sentences = () if votes.chosen is None else lines(chains[votes.chosen])
    return Answer(text=votes.winner, sentences=sentences, paragraphs=paragraphs, details=votes, limit=limit)


def back_off_bounds(question: Question, settings: BackOffSettings) -> tuple[StepBound, ...]:
    """See `SystemSpec`."""
    count, output = settings.chains, settings.max_chain_tokens
    form = AnswerForm.PROMPT
    chains = StepBound(kind="reason", times=count, in_turn=1, output=output, words=words_in(CHAINS), form=form)
    return (chains, *step_bounds(question, settings.react))


BACK_OFF = SystemSpec(
    **description("react-self-consistency"),
    settings=BackOffSettings,
    open=react_self_consistency,
    needs=lambda settings: replace(SPEC.needs(settings.react), words=ALL_WORDS, samples=True),
    step_bounds=back_off_bounds,
    details=Votes,
)

SPECS = (SPEC, BACK_OFF, replace(BACK_OFF, **description("self-consistency-react"), open=self_consistency_react))
