"""Explaining a wrong answer: every sign in its record, in the order of precedence."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.printable_text import cut
from cotrail.common.sentence_boundaries import sentences
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.history import LIMIT
from cotrail.core.questions import Paragraph
from cotrail.engines.knowledge.words import STOP_WORDS
from cotrail.evaluation.causes.answer_forms import LONGEST, same_but_for_form
from cotrail.evaluation.causes.cause import Cause, Explanation, Sign
from cotrail.evaluation.causes.gold_fates import GoldFate, QuestionRecord, answers_of, bounded, gold_fates, title_of
from cotrail.evaluation.causes.meant_answers import states
from cotrail.evaluation.causes.plain_words import is_number, names_and_numbers, plain, stands_in
from cotrail.evaluation.metrics.answer_scores import answer_scores


def right_in_chain(record: QuestionRecord) -> str:
    """Where the chain has the right answer, in words; empty where it hasn't.

    The last sentence that states an answer ("the answer is ...") decides. Where none does, the last sentence has to
    say that a published one is what was asked for (`states`); that it mentions one isn't enough.
    """
    stated = [(number, said) for number, said in enumerate(map(stated_answer, record.sentences), start=1) if said]
    if stated:
        number, answer = stated[-1]
        return f"sentence {number} states '{cut(answer, LONGEST)}'" if _is_right(record, answer) else ""
    return _said_last(record)


def limit_reached(record: QuestionRecord) -> str:
    """The limit that ended the question before it stated an answer, in words; empty where none did."""
    if not record.ended_by.startswith(LIMIT):
        return ""
    limit = record.ended_by.removeprefix(LIMIT)
    if not record.answer.strip():
        return f"the limit of {limit} ended it without an answer"
    if any(stated_answer(each) is not None for each in record.sentences):
        return ""
    return f"the limit of {limit} ended it before its chain stated an answer"


def _is_right(record: QuestionRecord, answer: str) -> bool:
    scores = answer_scores(record.scoring, answer, record.answers)
    if scores is not None and scores.em == 1:
        return True
    return bool(same_but_for_form(record.scoring, record.scene, answer, record.answers))


def _said_last(record: QuestionRecord) -> str:
    last = next((number for number in range(len(record.sentences), 0, -1) if record.sentences[number - 1].strip()), 0)
    sentence = record.sentences[last - 1] if last else ""
    sentence_words, given = f" {plain(sentence)} ", plain(record.short)
    for span in answers_of(record):
        if states(sentence, span, record.scene):
            behind = sentence_words[sentence_words.rfind(f" {plain(span)} ") :]
            return "" if given and stands_in(given, behind.strip()) else f"sentence {last} has '{span}'"
    return ""


# Sentences of a chain that a gold paragraph contradicts: as an entailer judged, or else by their words.

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
            for number, sentence, sentence_words in chain:
                if judgement := judged.get(sentence_words):
                    if judgement.contradicts:
                        yield (
                            f"the entailer judged at step {judgement.step} that the gold paragraph '{fate.name}' "
                            f"contradicts sentence {number} ({judgement.contradiction:.2f})"
                        )
                elif stands_in(given.title, sentence_words) and (said := given.otherwise(sentence, known)):
                    yield f"sentence {number} says {said} in the gold paragraph '{fate.name}'"


class _Given(Struct, frozen=True):
    """What a paragraph gives values of: all those by what they are of, in the order of its sentences."""

    title: str
    values: Mapping[tuple[str, bool], Sequence[str]]

    @classmethod
    def by(cls, paragraph: Paragraph) -> "_Given":
        title, found = title_of(paragraph), dict[tuple[str, bool], dict[str, None]]()
        for each in sentences(paragraph.text) if title else ():
            for of, value in values(each, title).items():
                found.setdefault(of, {})[value] = None
        return cls(title, {of: tuple(those) for of, those in found.items()})

    def otherwise(self, sentence: str, known: frozenset[str]) -> str:
        """What a sentence says otherwise, in words; empty where it doesn't."""
        words = frozenset(plain(sentence).split())
        for of, value in values(sentence, self.title).items():
            if value in known:
                continue
            if other := next((each for each in self.values.get(of, ()) if each not in words), None):
                return f"'{of[0]} ... {value}', which is '{other}'"
        return ""


def values(sentence: str, title: str) -> Values:
    """The first name and the first number or month behind each word that carries content, the title's apart."""
    sentence_words, marked, own = plain(sentence).split(), names_and_numbers(sentence), frozenset(title.split())
    found: dict[tuple[str, bool], str] = {}
    of, between = "", 0
    for word in sentence_words:
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


Fates = Sequence[GoldFate]


def explain(record: QuestionRecord) -> Explanation | None:
    """Why the answer is wrong; None where it is right. Of very long texts the beginning is looked at (`bounded`)."""
    if record.right:
        return None
    record = bounded(record)
    fates = gold_fates(record)
    signs = [Sign(cause=cause, facts=facts) for cause, rule in _RULES.items() if (facts := rule(record, fates))]
    return Explanation(signs=tuple(signs) or (Sign(cause=Cause.UNEXPLAINED, facts=_unexplained(record, fates)),))


def _form(record: QuestionRecord, _: Fates) -> str:
    given = dict.fromkeys((record.short, record.answer))
    forms = (same_but_for_form(record.scoring, record.scene, each, record.answers) for each in given)
    return next(filter(None, forms), "")


def _reader(record: QuestionRecord, fates: Fates) -> str:
    if record.trouble or _form(record, fates):
        return ""
    where = right_in_chain(record)
    return where and f"{where}, and the answer given is '{cut(record.short, LONGEST)}'"


def _never_found(record: QuestionRecord, fates: Fates) -> str:
    missing = [fate for fate in fates if fate.found is None and not fate.is_shown]
    if not missing:
        return ""
    where = f"in any result of {_searches(record.searches)}" if record.searches else "there: no search was made"
    return f"{_of(missing, fates)} {'was' if len(missing) == 1 else 'were'} not {where}: {_names(missing)}"


def _kept_from_model(fate: GoldFate) -> str:
    if fate.found and not fate.is_shown:
        return (
            f"gold paragraph '{fate.name}' was found at step {fate.found.step}, rank {fate.found.rank}, and never shown"
        )
    if fate.lost:
        return f"gold paragraph '{fate.name}' was shown at step {fate.seen[0].step} without its part with '{fate.lost}'"
    return ""


def _not_used(record: QuestionRecord, fates: Fates) -> str:
    unused = [fate for fate in fates if fate.used is False and not fate.lost]
    if any(fate.states for fate in unused) and _form(record, fates):
        # The published answer is there, in another form.
        unused = [fate for fate in unused if not fate.states]
    return "; ".join(map(_unused, unused))


def _unused(fate: GoldFate) -> str:
    shown = f"gold paragraph '{fate.name}' was shown at step {fate.seen[0].step}"
    if fate.states:
        return f"{shown} with '{fate.states[0]}', which is neither in the chain nor in the answer"
    return f"{shown}, and neither the chain nor the answer has anything that only it says"


_RULES: dict[Cause, Callable[[QuestionRecord, Fates], str]] = {
    Cause.NO_ANSWER: lambda record, _: record.trouble,
    Cause.FORM: _form,
    Cause.READER: _reader,
    Cause.LIMIT: lambda record, _: limit_reached(record),
    Cause.NEVER_FOUND: _never_found,
    Cause.NOT_SHOWN: lambda _, fates: "; ".join(filter(None, map(_kept_from_model, fates))),
    Cause.CONTRADICTED: lambda record, fates: "; ".join(dict.fromkeys(contradictions(record, fates))),
    Cause.NOT_USED: _not_used,
}
"""The facts for which each cause applies to a question, in the order of precedence; empty where it doesn't."""


def _unexplained(record: QuestionRecord, fates: Fates) -> str:
    """What is known, and which facts were missing."""
    if record.unread:
        return f"{count(record.unread, 'step')} can't be read by this version"
    if not fates:
        return "no gold paragraphs are published that the answer could be traced to"
    unclear = [fate for fate in fates if fate.used is None]
    if unclear:
        was = "was" if len(unclear) == 1 else "were"
        return f"all gold paragraphs were shown; whether {_of(unclear, fates)} {was} used can't be decided from words"
    those = "the gold paragraph was" if len(fates) == 1 else f"all {len(fates)} gold paragraphs were"
    return f"{those} found, shown and used"


def _of(some: Fates, fates: Fates) -> str:
    return "the gold paragraph" if len(fates) == 1 else f"{len(some)} of {len(fates)} gold paragraphs"


def _names(fates: Fates) -> str:
    return ", ".join(f"'{fate.name}'" for fate in fates)


def _searches(number: int) -> str:
    return f"{number:,} {'search' if number == 1 else 'searches'}"
