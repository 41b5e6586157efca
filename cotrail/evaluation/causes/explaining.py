"""Explaining a wrong answer: every sign in its record, in the order of precedence."""

from collections.abc import Callable, Iterator, Sequence

from cotrail.common.humanize import count
from cotrail.common.printable_text import cut
from cotrail.evaluation.causes.answer_forms import LONGEST, same_but_for_form
from cotrail.evaluation.causes.cause import Cause, Explanation, Sign
from cotrail.evaluation.causes.chain_answers import limit_reached, right_in_chain
from cotrail.evaluation.causes.contradictions import contradictions
from cotrail.evaluation.causes.gold_fates import GoldFate, gold_fates
from cotrail.evaluation.causes.question_record import QuestionRecord

Fates = Sequence[GoldFate]


def explain(record: QuestionRecord) -> Explanation | None:
    """Why the answer is wrong; None where it is right."""
    if record.right:
        return None
    fates = gold_fates(record)
    signs = [Sign(cause=cause, facts=facts) for cause, rule in _RULES.items() if (facts := rule(record, fates))]
    return Explanation(signs=tuple(signs) or (Sign(cause=Cause.UNEXPLAINED, facts=_unexplained(record, fates)),))


def _no_answer(record: QuestionRecord, _: Fates) -> str:
    return record.trouble


def _form(record: QuestionRecord, _: Fates) -> str:
    forms = (same_but_for_form(record.scoring, record.question, each, record.answers) for each in _given(record))
    return next(filter(None, forms), "")


def _given(record: QuestionRecord) -> Iterator[str]:
    yield from dict.fromkeys((record.short, record.answer))


def _reader(record: QuestionRecord, fates: Fates) -> str:
    if record.trouble or _form(record, fates):
        return ""
    where = right_in_chain(record)
    return where and f"{where}, and the answer given is '{cut(record.short, LONGEST)}'"


def _limit(record: QuestionRecord, _: Fates) -> str:
    return limit_reached(record)


def _never_found(record: QuestionRecord, fates: Fates) -> str:
    missing = [fate for fate in fates if not fate.is_found]
    if not missing:
        return ""
    where = f"in any result of {_searches(record.searches)}" if record.searches else "there: no search was made"
    return f"{_of(missing, fates)} {'was' if len(missing) == 1 else 'were'} not {where}: {_names(missing)}"


def _not_shown(_: QuestionRecord, fates: Fates) -> str:
    return "; ".join(filter(None, map(_kept_from_model, fates)))


def _kept_from_model(fate: GoldFate) -> str:
    if fate.found and not fate.is_shown:
        return (
            f"gold paragraph '{fate.name}' was found at step {fate.found.step}, rank {fate.found.rank}, and never shown"
        )
    if fate.lost:
        return f"gold paragraph '{fate.name}' was shown at step {fate.seen[0].step} without its part with '{fate.lost}'"
    return ""


def _contradicted(record: QuestionRecord, fates: Fates) -> str:
    return "; ".join(dict.fromkeys(contradictions(record, fates)))


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
    Cause.NO_ANSWER: _no_answer,
    Cause.FORM: _form,
    Cause.READER: _reader,
    Cause.LIMIT: _limit,
    Cause.NEVER_FOUND: _never_found,
    Cause.NOT_SHOWN: _not_shown,
    Cause.CONTRADICTED: _contradicted,
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
        return f"all gold paragraphs were shown; whether {_of(unclear, fates)} {was} used can't be told by words"
    those = "the gold paragraph was" if len(fates) == 1 else f"all {len(fates)} gold paragraphs were"
    return f"{those} found, shown and used"


def _of(some: Fates, fates: Fates) -> str:
    return "the gold paragraph" if len(fates) == 1 else f"{len(some)} of {len(fates)} gold paragraphs"


def _names(fates: Fates) -> str:
    return ", ".join(f"'{fate.name}'" for fate in fates)


def _searches(number: int) -> str:
    return f"{number:,} {'search' if number == 1 else 'searches'}"
