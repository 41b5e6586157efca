"""Whether a chain of thought has something of a paragraph, by their words."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.evaluation.causes.plain_words import content, names_and_numbers, plain, stands_in
from cotrail.evaluation.causes.question_record import QuestionRecord

LEAST_SHARED = 2
"""How many words of a paragraph's own a sentence shares with it, where none of them is a name or a number."""


class ParagraphWords(Struct, frozen=True):
    """The words of a question, and on how many of the pages that were seen each word stands."""

    asked: frozenset[str]
    counts: Counter[str]

    @classmethod
    def of(cls, record: QuestionRecord) -> "ParagraphWords":
        """Those of a question and of the paragraphs that its models saw; those of one title are one page."""
        pages: dict[str, set[str]] = defaultdict(set)
        for paragraph in dict.fromkeys(each.paragraph for each in record.seen):
            pages[paragraph.title or paragraph.text] |= content(paragraph.statement)
        return cls(content(record.question), Counter(chain.from_iterable(pages.values())))

    def own(self, words: frozenset[str]) -> frozenset[str]:
        """Those words of a paragraph that neither the question nor another page has."""
        return frozenset(word for word in words - self.asked if self.counts[word] <= 1)


def uses(
    said: Sequence[str], states: Sequence[str], paragraphs: Sequence[Paragraph], words: ParagraphWords
) -> bool | None:
    """Return whether what was said has something of paragraphs that count as one; None where their words don't tell.

    Where they have a published answer, it has to be said. Else a sentence has to name their title with another of
    their words, or to have a name or a number that only their page has, or two other such words. Words of the question
    tell nothing.

    states: the published answers that the paragraphs have.
    """
    texts = [text for text in map(plain, said) if text]
    if states:
        return any(stands_in(plain(span), text) for span in states for text in texts)
    told = [_Telling.of(each, words) for each in dict.fromkeys(paragraphs)]
    if not any(each.further for each in told):
        return None
    return any(each.is_in(text) for each in told for text in texts)


class _Telling(Struct, frozen=True, kw_only=True):
    """What tells that a sentence is from a paragraph; further: its words beyond its title's and the question's."""

    title: str
    further: frozenset[str]
    own: frozenset[str]
    own_names: frozenset[str]

    @classmethod
    def of(cls, paragraph: Paragraph, words: ParagraphWords) -> "_Telling":
        title, own = title_of(paragraph), words.own(content(paragraph.statement))
        names = names_and_numbers(paragraph.text) | frozenset(title.split())
        further = content(paragraph.text) - words.asked - frozenset(title.split())
        return cls(title=title, further=further, own=own, own_names=own & names)

    def is_in(self, text: str) -> bool:
        said = frozenset(text.split())
        if stands_in(self.title, text) and not self.further.isdisjoint(said):
            return True
        return not self.own_names.isdisjoint(said) or len(self.own & said) >= LEAST_SHARED


def title_of(paragraph: Paragraph) -> str:
    """The title in plain words, without what stands in brackets at its end to tell it from others."""
    return plain(paragraph.title.partition(" (")[0])
