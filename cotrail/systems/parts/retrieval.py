"""Searches for paragraphs, and the collection of what they find (IRCoT, section 3.1).

The rules that the paper doesn't state are those of the authors' released code, `commaqa/inference/ircot.py`.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from rapidfuzz import fuzz

from cotrail.common.humanize import Positive, RetrievalCount
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.ports.retriever import Scope
from cotrail.core.questions import Paragraph, Question, parse_titles, title_question
from cotrail.core.results import Retrieved
from cotrail.core.system import Part, Reply, expect
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt, instructed, pinned_paragraph, shown
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.steps import all_of, text_of

# The pages that a question with a pinned passage searches (IRCoT, appendix B: IIRC).

MAX_PAGES = 15
"""The most pages that are searched (`global_max_num_paras` in the released configurations)."""


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choice of the pages to search, for a question that pins a passage (IRCoT, appendix B)."""

    count: Positive = 3
    """Number of titles that are asked for."""

    titles: Literal["all", "asked"] = "all"
    """Whether `all` that the model writes are looked up, or only as many as were `asked` for."""

    max_tokens: Positive = 64
    """The most tokens that name titles."""

    scope: Scope = "only"
    """`only` searches the paragraphs of these pages, `after` filters the best of a search of the whole corpus, as
    the released code does."""

    found: Literal["all", "released"] = "all"
    """Which pages are searched: `all` that are found, and the whole corpus where none is; or, as by the `released`
    code, none whose paragraph that was found has more than `retrieval.max_paragraph_words`, and nothing at all where no
    page is left."""


def find_pages(
    question: Question, shots: Shots, settings: PageSettings, prompting: PromptSettings, most_words: int
) -> Part[tuple[str, ...] | None]:
    """Have the model name pages, and look up the corpus's nearest titles, each once; without any, search all pages.

    A question that pins no passage searches the whole corpus. A model may name more pages than it is asked for: each
    is looked up, and the first `MAX_PAGES` that are found are searched. None where nothing is to be searched.
    most_words: of a paragraph, see `PageSettings.found`.
    """
    pinned = pinned_paragraph(question)
    if pinned is None:
        return ()
    demonstrations = shots.get(AnswerForm.TITLES, Demonstrations())
    prompt = few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=(pinned,),
        question=instructed(title_question(question.text, settings.count), demonstrations.instruction),
        drop=prompting.drop,
    )
    titles = parse_titles((yield from text_of(Reason(prompt=prompt, max_tokens=settings.max_tokens, until="line"))))
    if settings.titles == "asked":
        titles = titles[: settings.count]
    # A model may misspell a title or make one up, so that each stands for the corpus's nearest one.
    searches = yield from all_of((Retrieve(query=title, count=1, field="title") for title in titles), Retrieved)
    found = (paragraph for each in searches for paragraph in each.paragraphs)
    if settings.found == "all":
        return _titles(found)
    return _titles(each for each in found if each.text.count(" ") < most_words) or None


def _titles(paragraphs: Iterable[Paragraph]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.title for each in paragraphs))[:MAX_PAGES]


def most_pages(question: Question, settings: PageSettings, most_words: int) -> tuple[StepBound, ...]:
    """The most steps that choose pages, none for a question that pins no passage; most_words: of the passage."""
    if pinned_paragraph(question) is None:
        return ()
    naming = StepBound(kind="reason", times=1, output=settings.max_tokens, words=most_words, form=AnswerForm.TITLES)
    looked_up = settings.max_tokens if settings.titles == "all" else settings.count
    return (naming, StepBound(kind="retrieve", times=looked_up))


class RetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search for paragraphs and their collection (IRCoT, section 3.1).

    What follows `max_paragraphs` is from the authors' released code (`commaqa/inference/ircot.py`); the paper doesn't
    say it.
    """

    retrieval_count: RetrievalCount = 4
    """Paragraphs a search (K)."""

    max_paragraphs: Positive = 15
    """Paragraphs collected, at most."""

    query_stop_words: tuple[str, ...] = ("who", "what", "when", "where", "why", "which", "how", "does", "is")
    """Words that are dropped from queries."""

    max_paragraph_words: Positive = 600
    """Paragraphs of more words are discarded."""

    prompt_paragraph_words: Positive = 350
    """A paragraph is cut to this many words in the prompt."""

    duplicate_similarity: Annotated[float, Meta(ge=0, le=100)] = 90.0
    """A paragraph is skipped if its title and its text are both at least this many percent similar to those of one
    already collected."""

    duplicates: Literal["alike", "released"] = "alike"
    """What is skipped: `alike` is that rule alone; the `released` code also skips a paragraph whose title is one
    collected paragraph's and whose text is another's."""

    pinned: Literal["once", "again", "released"] = "once"
    """What happens if the corpus also holds the passage that a question pins. It isn't collected, by the same
    similarity with titles in lower case (`once`); or it is collected `again`, like any other paragraph; or so too by
    the `released` code, where a paragraph of the same text takes the place of the passage in the reader's prompt."""

    distinct_texts: bool = False
    """Whether paragraphs with the same text count as one in a search, as in the released code; see
    `cotrail.engines.retrieval.search_server.best`."""

    @property
    def most_words(self) -> int:
        """The most words of paragraphs that a prompt shows."""
        return self.max_paragraphs * self.prompt_paragraph_words


def search(query: str, settings: RetrievalSettings, titles: tuple[str, ...], scope: Scope) -> Retrieve:
    """The search for a query, narrowed to these titles if there are any."""
    # Without titles the scope decides nothing; its default keeps it out of the request and the fingerprint.
    return Retrieve(
        query=query,
        count=settings.retrieval_count,
        titles=titles,
        scope=scope if titles else "only",
        distinct=settings.distinct_texts,
    )


def query_of(text: str, settings: RetrievalSettings) -> str:
    """A text as a query: without its question words."""
    return " ".join(word for word in text.split(" ") if word.lower() not in settings.query_stop_words).strip()


def collect(
    collected: tuple[Paragraph, ...], reply: Reply, settings: RetrievalSettings, pinned: Paragraph | None = None
) -> tuple[Paragraph, ...]:
    """Add the paragraphs that a search found, in rank order, up to the limit.

    Skipped are paragraphs of too many words, those whose title and text are both similar to those of one already
    collected, and the corpus's copy of the passage that the question pins.
    """
    for hit in expect(reply, Retrieved).hits:
        paragraph = hit.paragraph
        if len(collected) >= settings.max_paragraphs:
            break
        # Words are what spaces separate, as where prompts cut paragraphs.
        if paragraph.text.count(" ") >= settings.max_paragraph_words:
            continue
        if _is_duplicate(paragraph, collected, settings) or _is_pinned(paragraph, pinned, settings):
            continue
        collected += (paragraph,)
    return collected


def shown_to_reader(
    question: Question, collected: tuple[Paragraph, ...], settings: RetrievalSettings, prompting: PromptSettings
) -> tuple[Paragraph, ...]:
    """The paragraphs that a reader is shown: the passage that the question pins, and those collected.

    The released code (`add_and_reorder_if_pinned`) mistakes a paragraph with the text of the pinned passage for the
    passage: it stays where it is, or makes way for the passage at the bottom.
    """
    pinned = pinned_paragraph(question)
    texts = [paragraph.text for paragraph in collected]
    is_mistaken = pinned is not None and pinned not in collected and pinned.text in texts
    if pinned is None or not is_mistaken or settings.pinned != "released":
        return shown(question, collected)
    place = texts.index(pinned.text)
    return collected if prompting.pinned == "top" else (pinned, *collected[:place], *collected[place + 1 :])


def _is_duplicate(paragraph: Paragraph, collected: tuple[Paragraph, ...], settings: RetrievalSettings) -> bool:
    # The released code looks for the title among all titles and for the text among all texts, each by itself.
    if (
        settings.duplicates == "released"
        and any(paragraph.title == other.title for other in collected)
        and any(paragraph.text == other.text for other in collected)
    ):
        return True
    return any(_alike(paragraph, other, settings.duplicate_similarity) for other in collected)


def _is_pinned(paragraph: Paragraph, pinned: Paragraph | None, settings: RetrievalSettings) -> bool:
    """Return whether this is the pinned passage, which the prompt shows already."""
    if pinned is None or settings.pinned != "once":
        return False
    # IIRC's corpus has titles in lower case, its questions don't.
    one, other = (replace(each, title=each.title.lower()) for each in (paragraph, pinned))
    return _alike(one, other, settings.duplicate_similarity)


def _alike(one: Paragraph, other: Paragraph, similarity: float) -> bool:
    return _similar(one.title, other.title, similarity) and _similar(one.text, other.text, similarity)


def _similar(one: str, other: str, similarity: float) -> bool:
    one, other = one[:_COMPARED_CHARACTERS], other[:_COMPARED_CHARACTERS]
    return fuzz.ratio(one, other, score_cutoff=similarity) >= similarity


_COMPARED_CHARACTERS = 20_000
"""Characters of a title or a text that are compared: comparing takes time quadratic in them."""
