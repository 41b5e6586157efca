"""What causes of wrong answers are derived from: a question as its steps left it, the fate of its gold paragraphs."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut
from cotrail.common.sentence_boundaries import sentences
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.answer_forms import is_label
from cotrail.evaluation.causes.names_in_texts import Scene
from cotrail.evaluation.causes.plain_words import content, names_and_numbers, plain, stands_in
from cotrail.evaluation.metrics.answer_scores import published_spans
from cotrail.evaluation.metrics.supporting_paragraphs import Fold, Key, counted, fold_of, gold_key, paragraph_keys

MOST_CHARACTERS, LONGEST_CHAIN = 40_000, 1_000
"""Of each text, and of a chain, that the rules read: what stands behind isn't looked at."""


class FoundParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph in a search's result: the step, and its rank there, from 1."""

    paragraph: Paragraph
    step: int
    rank: int


class SeenParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph that a model saw; text: as much of it as was shown, its title included."""

    paragraph: Paragraph
    step: int
    text: str


class Judgement(Struct, frozen=True, kw_only=True):
    """An entailment step: how probably a paragraph entails and contradicts a sentence."""

    sentence: str
    paragraph: Paragraph
    step: int
    entailment: float
    contradiction: float

    @property
    def contradicts(self) -> bool:
        """Whether contradiction is the likeliest of the three."""
        return self.contradiction > max(self.entailment, 1 - self.entailment - self.contradiction)


class QuestionRecord(Struct, frozen=True, kw_only=True, dict=True):
    """A question, what its dataset publishes of it, and what its run did.

    scoring: by which its paragraphs and answers are compared.
    answers: the published ones; gold, pinned: as of `Question`.
    right: whether the answer is right by the dataset's own metric.
    answer: as it was given; stated: the span that an answer of several sentences states, if any.
    sentences: the question's chain of thought; reading: the sentences of the reader's own.
    searches: their number; found: what they found, in order; seen: what was in prompts, and what was read by extractors
        and entailers, in order.
    ended_by: see `cotrail.core.history`; trouble: why there is no answer, where there is none.
    unread: how many steps this version can't read.
    """

    question: str
    scoring: Scoring
    answers: tuple[str, ...]
    gold: tuple[GoldParagraph, ...] = ()
    pinned: GoldParagraph | None = None
    right: bool = False
    answer: str = ""
    stated: str = ""
    sentences: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    searches: int = 0
    found: tuple[FoundParagraph, ...] = ()
    seen: tuple[SeenParagraph, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    ended_by: str = ""
    trouble: str = ""
    unread: int = 0

    @cached_property
    def scene(self) -> Scene:
        """What its answers are given to: the question, and the gold paragraphs and those that were seen."""
        return Scene(self.question, (*self.gold, *dict.fromkeys(each.paragraph for each in self.seen)))

    @property
    def short(self) -> str:
        return self.stated or self.answer

    @property
    def said(self) -> tuple[str, ...]:
        """All that was written for the answer: the chain, the reader's own and the answer."""
        return (*self.sentences, *self.reading, self.answer)


def bounded(record: QuestionRecord) -> QuestionRecord:
    """The question with the beginning of what is longer than the rules read."""
    return replace(
        record,
        question=_cut(record.question),
        answers=tuple(map(_cut, record.answers)),
        gold=tuple(map(_beginning, record.gold)),
        pinned=None if record.pinned is None else _beginning(record.pinned),
        answer=_cut(record.answer),
        stated=_cut(record.stated),
        sentences=tuple(map(_cut, record.sentences[:LONGEST_CHAIN])),
        reading=tuple(map(_cut, record.reading[:LONGEST_CHAIN])),
        found=tuple(replace(each, paragraph=_beginning(each.paragraph)) for each in record.found),
        seen=tuple(replace(each, paragraph=_beginning(each.paragraph), text=_cut(each.text)) for each in record.seen),
        judgements=tuple(replace(each, paragraph=_beginning(each.paragraph)) for each in record.judgements),
    )


P = TypeVar("P", Paragraph, GoldParagraph)


def _beginning(paragraph: P) -> P:
    short = len(paragraph.text) <= MOST_CHARACTERS
    return paragraph if short else replace(paragraph, text=_cut(paragraph.text))


def _cut(text: str) -> str:
    return text[:MOST_CHARACTERS]


# Whether a chain of thought has something of a paragraph, by their words.

LEAST_SHARED = 2
"""How many words of a paragraph's own a sentence shares with it, where none of them is a name or a number."""


class ParagraphWords(Struct, frozen=True):
    """The words of a question, and on how many of the pages that were seen each word stands."""

    asked: frozenset[str]
    counts: Counter[str]

    @classmethod
    def of(cls, record: QuestionRecord) -> "ParagraphWords":
        """Those of a question and of what its models saw of paragraphs; those of one title are one page."""
        pages: dict[str, set[str]] = defaultdict(set)
        for each in record.seen:
            pages[each.paragraph.title or each.paragraph.text] |= content(each.paragraph.statement) & content(each.text)
        return cls(content(record.question), Counter(chain.from_iterable(pages.values())))

    def own(self, words: frozenset[str]) -> frozenset[str]:
        """Those words of a paragraph that neither the question nor another page has."""
        return frozenset(word for word in words - self.asked if self.counts[word] <= 1)


def uses(
    said: Sequence[str], states: Sequence[str], seen: Sequence[SeenParagraph], words: ParagraphWords
) -> bool | None:
    """Return whether what was said has something of what was shown of a paragraph; None where those words don't tell.

    Where it has a published answer, that has to be said. Else a sentence has to name its title with another of its
    words, or to have a name or a number that only its page has, or two other such words. Words of the question tell
    nothing, and neither do those that were cut off.

    states: the published answers that it has; seen: the paragraph each time that it was shown.
    """
    texts = [text for text in map(plain, said) if text]
    if states:
        return any(stands_in(plain(span), text) for span in states for text in texts)
    tellings = [_Telling.of(each, words) for each in seen]
    if not any(each.further for each in tellings):
        return None
    return any(each.is_in(text) for each in tellings for text in texts)


class _Telling(Struct, frozen=True, kw_only=True):
    """What tells that a sentence is from a paragraph; further: its words beyond its title's and the question's."""

    title: str
    further: frozenset[str]
    own: frozenset[str]
    own_names: frozenset[str]

    @classmethod
    def of(cls, seen: SeenParagraph, words: ParagraphWords) -> "_Telling":
        paragraph, shown = seen.paragraph, content(seen.text)
        title, own = title_of(paragraph), words.own(content(paragraph.statement) & shown)
        names = names_and_numbers(paragraph.text) | frozenset(title.split())
        further = (content(paragraph.text) & shown) - words.asked - frozenset(title.split())
        return cls(title=title, further=further, own=own, own_names=own & names)

    def is_in(self, text: str) -> bool:
        said = frozenset(text.split())
        if stands_in(self.title, text) and not self.further.isdisjoint(said):
            return True
        return not self.own_names.isdisjoint(said) or len(self.own & said) >= LEAST_SHARED


def title_of(paragraph: Paragraph) -> str:
    """The title in plain words, without what is in brackets at its end to tell it from others."""
    return plain(paragraph.title.partition(" (")[0])


class GoldFate(Struct, frozen=True, kw_only=True):
    """What became of a gold paragraph.

    found: the search that first found it; seen: every time that a model saw it. states: the published answers that it
    has. lost: what the question needs of it and no model saw, since that part was cut off: see `_lost`. used: whether
    the chain or the answer has something of it; None where nothing tells.
    """

    gold: GoldParagraph
    found: FoundParagraph | None = None
    seen: tuple[SeenParagraph, ...] = ()
    states: tuple[str, ...] = ()
    lost: str = ""
    used: bool | None = None

    @property
    def name(self) -> str:
        """Its title, or the beginning of its text where it has none, or its id where it has neither."""
        return self.gold.title or self.gold.text[:LONGEST_NAME] or self.gold.id

    @property
    def is_shown(self) -> bool:
        """Whether a model saw any of it."""
        return bool(self.seen)

    @property
    def words(self) -> str:
        """The fate in words: `found at step 0, rank 2; shown at step 3; not used`."""
        found = f"found at step {self.found.step}, rank {self.found.rank}" if self.found else "found by no search"
        if not self.seen:
            return f"{found}; not shown"
        cut = f" without its part with '{self.lost}'" if self.lost else ""
        used = {True: "used", False: "not used", None: "whether it was used can't be decided"}[self.used]
        return f"{found}; shown at step {self.seen[0].step}{cut}; {used}"


LONGEST_NAME = 60
"""Characters of a text that stands for a title."""

MOST_SENTENCES = 200
"""How many sentences of a paragraph are looked for in a passage of its title."""


def gold_fates(record: QuestionRecord) -> tuple[GoldFate, ...]:
    """The fates of the gold paragraphs that count in the paragraph recall, each paragraph once."""
    fold = fold_of(record.scoring)
    once = {gold_key(each, fold): each for each in reversed(counted(record.gold, record.pinned))}
    if not once:
        return ()
    found, words = dict(_first_found(record, fold)), ParagraphWords.of(record)
    keyed = [(each, paragraph_keys(each.paragraph, fold), fold(each.paragraph.title)) for each in record.seen]
    fates = []
    for key, gold in reversed(once.items()):
        first, seen = found.get(key), tuple(_seen(keyed, key, gold, fold))
        # Of a page that is gold as a whole, the text is that of what was found of it.
        paragraphs = dict.fromkeys(each.paragraph for each in (*((first,) if first else ()), *seen))
        texts = dict.fromkeys(plain(f"{each.title} {each.text}") for each in (gold, *paragraphs))
        spans = dict.fromkeys(answers_of(record))
        states = tuple(span for span in spans if any(stands_in(plain(span), text) for text in texts))
        lost = _lost(record, gold, states, seen) if seen else ""
        used = _used(record, states, seen, words)
        fates.append(GoldFate(gold=gold, found=first, seen=seen, states=states, lost=lost, used=used))
    return tuple(fates)


def answers_of(record: QuestionRecord) -> Iterator[str]:
    """The spans of published answers that tell something by standing in a text: no labels, no words of the question."""
    asked = frozenset(plain(record.question).split())
    for answer in record.answers:
        if not is_label(record.scoring, answer):
            yield from (span for span in published_spans(answer) if not asked.issuperset(plain(span).split()))


def _first_found(record: QuestionRecord, fold: Fold) -> Iterator[tuple[Key, FoundParagraph]]:
    for each in reversed(record.found):
        yield from ((key, each) for key in paragraph_keys(each.paragraph, fold))


def _seen(
    keyed: Iterable[tuple[SeenParagraph, Container[Key], str]], key: Key, gold: GoldParagraph, fold: Fold
) -> Iterator[SeenParagraph]:
    """Whenever a model saw the paragraph, or an excerpt: a passage of its title with a sentence of it (ReAct).

    keyed: what models saw, with its keys and its folded title.
    """
    title, parts = fold(gold.title), [plain(each) for each in islice(sentences(gold.text), MOST_SENTENCES)]
    for each, keys, its_title in keyed:
        if key in keys or (title and its_title == title and any(stands_in(part, plain(each.text)) for part in parts)):
            yield each


def _lost(record: QuestionRecord, gold: GoldParagraph, states: Sequence[str], seen: Sequence[SeenParagraph]) -> str:
    """What the question needs of a paragraph and no prompt shows, though it shows others of its parts; else empty.

    That is every published answer that it has; each of its sentences that the dataset names as supporting; or, where it
    names none, the title of another gold paragraph, to which this one leads.
    """
    shown = [plain(text) for text in dict.fromkeys(each.text for each in seen)]
    texts = [plain(each.statement) for each in dict.fromkeys(each.paragraph for each in seen)]

    def is_cut(part: str) -> bool:
        return any(stands_in(part, text) for text in texts) and not any(stands_in(part, text) for text in shown)

    if states and not any(stands_in(plain(span), text) for span in states for text in shown):
        return states[0]
    if gold.facts:
        return next((cut(fact, LONGEST_NAME) for fact in gold.facts if is_cut(plain(fact))), "")
    asked = plain(record.question)
    titles = {each.title: plain(each.title.partition(" (")[0]) for each in record.gold if each.title != gold.title}
    return next((title for title, words in titles.items() if not stands_in(words, asked) and is_cut(words)), "")


def _used(
    record: QuestionRecord, states: Sequence[str], seen: Sequence[SeenParagraph], words: ParagraphWords
) -> bool | None:
    """Whether it is used; a bare answer without a chain tells that only of what has a published answer."""
    if not seen or not (states or record.sentences):
        return None
    return uses(record.said, states, seen, words)
