"""The fate of a question's gold paragraphs: found, shown, used."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from cotrail.common.sentence_boundaries import sentences
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.causes.answer_forms import is_label
from cotrail.evaluation.causes.paragraph_use import ParagraphWords, uses
from cotrail.evaluation.causes.plain_words import plain, stands_in
from cotrail.evaluation.causes.question_record import FoundParagraph, QuestionRecord, SeenParagraph
from cotrail.evaluation.metrics.drop import published_spans
from cotrail.evaluation.metrics.supporting_paragraphs import Fold, Key, counted, fold_of, gold_key, paragraph_keys


class GoldFate(Struct, frozen=True, kw_only=True):
    """What became of a gold paragraph.

    found: the search that first found it; seen: every time that a model saw it.
    states: the published answers that it has; lost: one of them that no model saw, since its part was cut off.
    used: whether the chain or the answer has something of it; None where nothing tells.
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
    def is_found(self) -> bool:
        """Whether a search found it; what a prompt shows without a search counts too."""
        return self.found is not None or self.is_shown

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
        used = {True: "used", False: "not used", None: "whether it was used can't be told"}[self.used]
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
    return tuple(
        _fate(record, gold, found.get(key), tuple(_seen(keyed, key, gold, fold)), words)
        for key, gold in reversed(once.items())
    )


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
        if key in keys or (title and its_title == title and _has_one_of(parts, plain(each.text))):
            yield each


def _has_one_of(parts: Sequence[str], text: str) -> bool:
    return any(stands_in(part, text) for part in parts)


def _fate(
    record: QuestionRecord,
    gold: GoldParagraph,
    found: FoundParagraph | None,
    seen: tuple[SeenParagraph, ...],
    words: ParagraphWords,
) -> GoldFate:
    # Of a page that is gold as a whole, the text is that of what was found of it.
    paragraphs = dict.fromkeys(each.paragraph for each in (*((found,) if found else ()), *seen))
    texts = dict.fromkeys(plain(f"{each.title} {each.text}") for each in (gold, *paragraphs))
    states = tuple(span for span in dict.fromkeys(answers_of(record)) if any(stands_in(plain(span), t) for t in texts))
    shown = [plain(text) for text in dict.fromkeys(each.text for each in seen)]
    lost = [span for span in states if not any(stands_in(plain(span), text) for text in shown)]
    return GoldFate(
        gold=gold,
        found=found,
        seen=seen,
        states=states,
        lost=lost[0] if shown and len(lost) == len(states) > 0 else "",
        used=_used(record, states, seen, words),
    )


def _used(
    record: QuestionRecord, states: Sequence[str], seen: Sequence[SeenParagraph], words: ParagraphWords
) -> bool | None:
    """Whether it is used; a bare answer without a chain tells that only of what has a published answer."""
    if not seen or not (states or record.sentences):
        return None
    return uses(record.said, states, [each.paragraph for each in seen], words)
