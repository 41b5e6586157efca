"""What tells published agents apart that search by tags: their marks, prompts and rules."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.common.toml_files import read_toml
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Piece, Prompt, Text
from cotrail.core.questions import Paragraph
from cotrail.systems.parts.answers import between, boxed, first_between
from cotrail.systems.parts.prompting import Filling, own_words, with_defaults, worded
from cotrail.systems.parts.searching import SearchSettings, shown

ANSWER = "<answer>", "</answer>"
TEXT = "\\text{"


class TagAgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that searches by tags."""

    search: SearchSettings = SearchSettings()
    calls: Positive = 10
    """How often the model writes at most; behind the last time nothing is searched for."""

    searches: Positive | None = None
    """Searches that are carried out at most; any number unless given."""

    max_tokens: Positive = 512
    """The most tokens that it writes each time."""

    total_tokens: Positive | None = None
    """The tokens of prompt and text together from which on nothing more is written, and there is no answer; any number
    unless given."""

    found_tokens: Positive | None = None
    """What is found by a search is cut to this many tokens, its tags included; whole unless given."""

    window_tokens: Positive | None = None
    """Of a prompt only the last so many tokens are shown to the model; all unless given."""

    unanswered: str = ""
    """The answer where the model gives none."""

    temperature: Temperature | None = 0.0
    """The temperature; the run's where it is left out."""

    explored: Positive = 10
    """How often an explorer writes for one search, at most."""

    explores: Literal["shown", "read"] = "shown"
    """An explorer is `shown` the reasoning and the pages that it opens; or, as by the authors' code, it has an intent,
    pages are `read` for it, it is reminded of what it asked for before, and it has to report in the end."""

    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Only the likeliest tokens that together have this probability are drawn."""

    top_k: Annotated[int, Meta(ge=0)] = 0
    """Only so many of the likeliest tokens are drawn from; 0 for all."""

    repetition_penalty: Annotated[float, Meta(gt=0)] = 1.0
    """What tokens that have occurred are penalised by; 1 for nothing."""


class TagAgent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published agent; cotrail's are in `agents.toml`.

    words: the folder of its prompts. layout: whether these are turns of a conversation, or plain text.
    query: what stands around a query; nested: where it begins if that is opened twice. cleaned: what is put in place of
        what in it. ends_answer: whether the end of an answer ends what is written.
    queryless: what a closing tag without a query leads to, and one without an opening tag: a search that finds nothing,
        where there is an opening tag, and else the end; words that say so, in either case; or the end.
    found: what stands around what was found; document: the form of a paragraph in it; gap: between two of them;
        none_found: what stands there where nothing was.
    answer: where all that the model wrote has the answer: in the last tags, in the last ones that are `closed`, in the
        box of the first tags, or in the last box.
    retries: whether the model is reminded where it neither searches nor answers, and continues; else it has ended.
    reads: who reads the paragraphs, so that the agent is shown only what that finds in them: a further prompt, or an
        explorer that searches and opens pages itself; nobody where empty.
    repeats: what a query leads to that was searched for before: another search, words that say so, or the end.
    settings: those with other defaults than the type has; released: those of the authors' code where it departs from
        the paper.
    """

    words: str
    settings: Mapping[str, Any]
    query: tuple[str, str]
    found: tuple[str, str]
    document: str
    answer: Literal["tagged", "closed", "boxed in tags", "boxed"]
    layout: Literal["turns", "plain"] = "turns"
    nested: Literal["first", "last"] = "first"
    gap: str = ""
    none_found: str = ""
    cleaned: tuple[tuple[str, str], ...] = ()
    queryless: Literal["searched", "told", "end"] = "searched"
    ends_answer: bool = True
    retries: bool = False
    reads: Literal["", "documents", "explorer"] = ""
    repeats: Literal["searched", "told", "end"] = "searched"
    released: Mapping[str, Any] = {}

    @property
    def stop(self) -> tuple[str, ...]:
        """The strings that end what the model writes."""
        return (self.query[1], ANSWER[1]) if self.ends_answer else (self.query[1],)

    def query_in(self, text: str) -> str | None:
        """The query with which a text ends that was ended by the query's closing tag; None where it is no query."""
        opened = self.query[0]
        _, is_open, behind = text.partition(opened) if self.nested == "first" else text.rpartition(opened)
        for removed, put in self.cleaned:
            behind = behind.replace(removed, put)
        query = behind.strip() if is_open else None
        return query if self.queryless == "searched" else query or ("" if self.queryless == "told" else None)

    def has_ended(self, text: str, query: str | None, queries: Sequence[str]) -> bool:
        """Return whether nothing follows what was written; queries: those that were searched for before."""
        if query is None:
            return not self.retries or self.answer_in(text) is not None
        return self.repeats == "end" and query in queries

    def answer_in(self, text: str) -> str | None:
        """The answer in all that the model wrote; None where it states none."""
        return _ANSWERS[self.answer](text)

    def settings_type(self) -> type[TagAgentSettings]:
        """The settings of its runs, a type of its own at each call."""
        read = msgspec.convert(self.settings, TagAgentSettings)
        return with_defaults(TagAgentSettings, **{name: getattr(read, name) for name in self.settings})


def tagged_answer(text: str) -> str | None:
    """What stands between the last tags of an answer."""
    return between(text, *ANSWER)


def closed_answer(text: str) -> str | None:
    """What stands between the last tags of an answer that is closed (`qa_em.py` of Search-R1)."""
    return between(text.rpartition(ANSWER[1])[0], *ANSWER) if ANSWER[1] in text else None


def boxed_in_answer(text: str) -> str | None:
    """The result that the first answer boxes (`re_search.py`)."""
    answer = first_between(text, *ANSWER)
    return None if answer is None else boxed(answer)


def boxed_text(text: str) -> str | None:
    r"""The result that is boxed last, without a `\text{}` or brackets around it (`evaluate.py` of Search-o1)."""
    result = boxed(text)
    if result is None:
        return None
    is_text = result.startswith(TEXT) and result.endswith("}")
    return (result[len(TEXT) : -1] if is_text else result).strip().strip("()")


_ANSWERS: Mapping[str, Callable[[str], str | None]] = {
    "tagged": tagged_answer,
    "closed": closed_answer,
    "boxed in tags": boxed_in_answer,
    "boxed": boxed_text,
}

AGENTS = msgspec.convert(read_toml(Path(__file__).with_name("agents.toml")), dict[str, TagAgent])
"""The agents by name."""


# An agent as it is set up for a question: its record, its words and its settings, and how it has the model write.


class Observed(Struct, frozen=True, kw_only=True):
    """What is put behind what was written, the queries that were searched for, and the paragraphs that were found."""

    pieces: tuple[Piece, ...]
    queries: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


class SetUp(Struct, frozen=True, kw_only=True):
    """An agent with what a run brings."""

    agent: TagAgent
    shots: Shots
    settings: TagAgentSettings

    def words(self, name: str, **values: Filling) -> tuple[str | Piece, ...]:
        """The pieces of its prompt of that name."""
        return worded(self.shots, own_words(self.agent.words), name, **values)

    def message(self, prompt: Prompt, stop: tuple[str, ...] = ()) -> Reason:
        """What the model writes next."""
        settings = self.settings
        return Reason(
            prompt=prompt,
            max_tokens=settings.max_tokens,
            until="stop",
            stop=stop,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            repetition_penalty=settings.repetition_penalty,
        )

    def documents(self, paragraphs: tuple[Paragraph, ...], yields: int = 1) -> tuple[Piece, ...]:
        """The paragraphs in the agent's form, or its words for none."""
        tokens, pieces = self.settings.found_tokens, list[Piece]()
        if not paragraphs and self.agent.none_found:
            pieces.append(Text(self.agent.none_found, tokens=tokens))
        for each in shown(paragraphs, self.agent.document, self.settings.search):
            if pieces and self.agent.gap:
                pieces.append(Text(self.agent.gap, tokens=tokens))
            pieces.append(replace(each, yields=yields, tokens=tokens))
        return tuple(pieces)

    def between_tags(self, *pieces: Piece) -> tuple[Piece, ...]:
        """These between the tags of what was found, all cut together where the settings limit their tokens."""
        before, behind = (Text(each, tokens=self.settings.found_tokens) for each in self.agent.found)
        return (before, *pieces, behind)

    def notice(self, name: str) -> Text:
        """The words of that name, which have no places, as one piece."""
        return Text("".join(map(str, self.words(name))))
