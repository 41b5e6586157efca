"""What tells published agents apart that search by tags: their marks, prompts and rules. A record an agent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
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


class TagAgent(Struct, frozen=True, kw_only=True):
    """A published agent.

    words: the folder of its prompts. layout: whether these are turns of a conversation, or plain text.
    query: what stands around a query; nested: where it begins if that is opened twice. cleaned: what is put in place of
        what in it. ends_answer: whether the end of an answer ends what is written.
    queryless: what a closing tag without a query leads to, and one without an opening tag: a search that finds nothing,
        where there is an opening tag, and else the end; words that say so, in either case; or the end.
    found: what stands around what was found; document: the form of a paragraph in it; gap: between two of them;
        none_found: what stands there where nothing was.
    answer: the answer in all that the model wrote, None where it states none.
    retries: whether the model is reminded where it neither searches nor answers, and continues; else it has ended.
    reads: who reads the paragraphs, so that the agent is shown only what that finds in them: a further prompt, or an
        explorer that searches and opens pages itself; nobody where empty.
    repeats: what a query leads to that was searched for before: another search, words that say so, or the end.
    meaning: what it does, in a sentence; released: settings of the authors' code where it departs from the paper.
    """

    name: str
    title: str
    paper: str
    words: str
    settings: type[TagAgentSettings]
    query: tuple[str, str]
    found: tuple[str, str]
    document: str
    answer: Callable[[str], str | None]
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
    meaning: str
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
            return not self.retries or self.answer(text) is not None
        return self.repeats == "end" and query in queries


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


SEARCH_R1 = TagAgent(
    name="search-r1",
    title="Search-R1",
    meaning="Have a model that was trained to search with tags reason, search, and answer in one message.",
    paper="Jin et al., 2025, https://arxiv.org/abs/2503.09516",
    words="search_r1",
    settings=with_defaults(
        TagAgentSettings, search=SearchSettings(count=3), calls=5, max_tokens=500, found_tokens=500, window_tokens=4096
    ),
    query=("<search>", "</search>"),
    found=("\n\n<information>", "</information>\n\n"),
    document="Doc {number}(Title: {title}) {text}",
    gap="\n",
    answer=closed_answer,
    retries=True,
)

ZEROSEARCH = TagAgent(
    name="zerosearch",
    title="ZeroSearch",
    meaning="Do as Search-R1 does, with a model that learned it from a simulated search engine.",
    paper="Sun et al., 2025, https://arxiv.org/abs/2505.04588",
    words="zerosearch",
    settings=with_defaults(TagAgentSettings, calls=5, max_tokens=500, found_tokens=500, window_tokens=4096),
    query=SEARCH_R1.query,
    found=SEARCH_R1.found,
    document="Doc {number}: {title} {text}",
    gap=SEARCH_R1.gap,
    answer=closed_answer,
    retries=True,
)

RESEARCH = TagAgent(
    name="research",
    title="ReSearch",
    meaning="Have a model that was trained on it think and search in turn, and box its result.",
    paper="Chen et al., 2025, https://arxiv.org/abs/2503.19470",
    words="research",
    settings=with_defaults(TagAgentSettings, calls=32, max_tokens=1024, total_tokens=8192),
    query=("<search>", "</search>"),
    found=(" <result>\n", "\n</result>"),
    document="{title}\n{text}",
    gap="\n\n",
    nested="last",
    queryless="told",
    ends_answer=False,
    answer=boxed_in_answer,
)

R1_SEARCHER = TagAgent(
    name="r1-searcher",
    title="R1-Searcher",
    meaning="Have a model that was trained on it search while it thinks, in plain text, and answer.",
    released={"unanswered": "I don't know."},
    paper="Song et al., 2025, https://arxiv.org/abs/2503.05592",
    words="r1_searcher",
    settings=with_defaults(TagAgentSettings, calls=9, top_p=0.95),
    query=("<|begin_of_query|>", "<|end_of_query|>"),
    found=("\n\n<|begin_of_documents|>\n", "<|end_of_documents|>\n\n"),
    document="({number}){title} {text}\n",
    layout="plain",
    nested="last",
    cleaned=(('"', ""), ("'", ""), ("\t", " "), ("...", "")),
    queryless="end",
    none_found="None",
    answer=tagged_answer,
)

SEARCH_O1 = TagAgent(
    name="search-o1",
    title="Search-o1",
    meaning="Have a reasoning model search while it thinks; a further prompt takes from the pages what helps.",
    paper="Li et al., 2025, https://arxiv.org/abs/2501.05366",
    words="search_o1",
    settings=with_defaults(
        TagAgentSettings,
        search=SearchSettings(count=10),
        calls=15,
        searches=10,
        max_tokens=8192,
        temperature=0.7,
        top_p=0.8,
        top_k=20,
        repetition_penalty=1.05,
    ),
    query=("<|begin_search_query|>", "<|end_search_query|>"),
    found=("\n\n<|begin_search_result|>", "<|end_search_result|>\n\n"),
    document="Page {number}: {title}\n{text}\n",
    ends_answer=False,
    answer=boxed_text,
    reads="documents",
    repeats="told",
)

WEBTHINKER = TagAgent(
    name="webthinker",
    title="WebThinker",
    meaning="Do as Search-o1 does, where an explorer searches further and opens pages before it reports.",
    paper="Li et al., 2025, https://arxiv.org/abs/2504.21776",
    words="webthinker",
    settings=with_defaults(SEARCH_O1.settings, calls=30, searches=20, top_k=0),
    query=SEARCH_O1.query,
    found=SEARCH_O1.found,
    document=SEARCH_O1.document,
    ends_answer=False,
    answer=boxed_text,
    released={"explores": "read"},
    reads="explorer",
    repeats="end",
)

AGENTS = (SEARCH_R1, RESEARCH, R1_SEARCHER, ZEROSEARCH, SEARCH_O1, WEBTHINKER)


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
