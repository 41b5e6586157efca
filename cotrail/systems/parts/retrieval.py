"""Searches for paragraphs, and the collection of what they find (IRCoT, section 3.1).

The rules that the paper doesn't state are those of the authors' released code, `commaqa/inference/ircot.py`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from rapidfuzz import fuzz

from cotrail.common.numbers import Positive
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Scope
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Reply, expect
from cotrail.systems.parts.defaults import with_defaults
from cotrail.systems.parts.prompting import PromptSettings, pinned_paragraph, shown


class RetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search for paragraphs and their collection (IRCoT, section 3.1).

    What follows `max_paragraphs` is from the authors' released code (`commaqa/inference/ircot.py`); the paper doesn't
    say it.
    """

    retrieval_count: Positive = 4
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
    similarity with titles in lower case (`once`); or it is collected `again`, like any other paragraph; or so too
    by the `released` code, where a paragraph of the same text takes the place of the passage in the reader's
    prompt."""

    distinct_texts: bool = False
    """Whether paragraphs with the same text count as one in a search, as in the released code; see
    `cotrail.engines.retrieval.bm25.best`."""

    @property
    def most_words(self) -> int:
        """The most words of paragraphs that a prompt shows."""
        return self.max_paragraphs * self.prompt_paragraph_words


RetrievalSettings1 = with_defaults(RetrievalSettings, pinned="again")
"""Version 1 of the systems, which could collect a pinned passage again."""


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
    collected: tuple[Paragraph, ...],
    reply: Reply,
    settings: RetrievalSettings,
    pinned: Paragraph | None = None,
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
    pairs = (one.title, other.title), (one.text, other.text)
    beginnings = ((a[:_COMPARED_CHARACTERS], b[:_COMPARED_CHARACTERS]) for a, b in pairs)
    return all(fuzz.ratio(a, b, score_cutoff=similarity) >= similarity for a, b in beginnings)


_COMPARED_CHARACTERS = 20_000
"""Characters of a title or a text that are compared: comparing takes time quadratic in them."""
