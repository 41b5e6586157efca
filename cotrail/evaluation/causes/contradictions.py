"""Sentences of a chain that a gold paragraph contradicts: as an entailer judged, or else by their words."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.common.sentence_boundaries import sentences
from cotrail.core.paragraphs import Paragraph
from cotrail.engines.knowledge.words import STOP_WORDS
from cotrail.evaluation.causes.gold_fates import GoldFate
from cotrail.evaluation.causes.paragraph_use import title_of
from cotrail.evaluation.causes.plain_words import is_number, names_and_numbers, plain, stands_in
from cotrail.evaluation.causes.question_record import Judgement, QuestionRecord

REACH = 3
"""How many words without content may stand between a value and the word that says what it is of."""

Values = Mapping[tuple[str, bool], str]
"""Names and numbers of a text by what they are of, and whether they are numbers: "born in Marl" has Marl of born."""


def contradictions(record: QuestionRecord, fates: Sequence[GoldFate]) -> Iterator[str]:
    """What a sentence of the chain says otherwise than a gold paragraph that was shown, a sentence each.

    An entailer's judgement of the two decides where it is recorded. Else, a sentence contradicts a paragraph whose
    title it names if it gives something another value: behind the same word ("born"), it has a name where the paragraph
    has another name, or a number or month where that has another one, and its value stands nowhere in the question or
    in anything that was shown.
    """
    texts = dict.fromkeys((record.question, *(each.text for each in record.seen)))
    known = frozenset(word for text in texts for word in plain(text).split())
    chain = [(number, sentence, plain(sentence)) for number, sentence in enumerate(record.sentences, start=1)]
    for fate in fates:
        for paragraph in dict.fromkeys(each.paragraph for each in fate.seen):
            judged = {plain(each.sentence): each for each in record.judgements if each.paragraph == paragraph}
            given = _Given.by(paragraph)
            for number, sentence, told in chain:
                if judgement := judged.get(told):
                    if judgement.contradicts:
                        yield _as_judged(number, fate, judgement)
                elif stands_in(given.title, told) and (said := given.otherwise(sentence, known)):
                    yield f"sentence {number} says {said} in the gold paragraph '{fate.name}'"


def _as_judged(number: int, fate: GoldFate, judgement: Judgement) -> str:
    return (
        f"the entailer judged at step {judgement.step} that the gold paragraph '{fate.name}' contradicts sentence "
        f"{number} ({judgement.contradiction:.2f})"
    )


class _Given(Struct, frozen=True):
    """What a paragraph gives values of."""

    title: str
    sentences: tuple[Values, ...]

    @classmethod
    def by(cls, paragraph: Paragraph) -> "_Given":
        title = title_of(paragraph)
        return cls(title, tuple(values(each, title) for each in sentences(paragraph.text)) if title else ())

    def otherwise(self, sentence: str, known: frozenset[str]) -> str:
        """What a sentence says otherwise, in words; empty where it doesn't."""
        words = frozenset(plain(sentence).split())
        for of, value in values(sentence, self.title).items():
            if value in known:
                continue
            for each in self.sentences:
                if (other := each.get(of)) and other not in words:
                    return f"'{of[0]} ... {value}', which is '{other}'"
        return ""


def values(sentence: str, title: str) -> Values:
    """The first name and the first number or month behind each word that carries content, the title's apart."""
    told, marked, own = plain(sentence).split(), names_and_numbers(sentence), frozenset(title.split())
    found: dict[tuple[str, bool], str] = {}
    of, between = "", 0
    for word in told:
        if word in own:
            continue
        if word in marked or is_number(word):
            if of and between <= REACH:
                found.setdefault((of, is_number(word)), word)
        elif word in STOP_WORDS:
            between += 1
        else:
            of, between = word, 0
    return found
