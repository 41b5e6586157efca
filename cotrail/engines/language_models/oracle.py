"""Oracle: MuSiQue's gold chains of thought in place of a model, the upper bound of a system that reasons correctly.

MuSiQue's `question_decomposition` has the hops of a question, each with its gold answer (Trivedi et al., TACL 2022). A
hop is a plain question or "subject >> relation"; `#1` in it stands for the first hop's answer.
"""

import re
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.engines.language_models.scripted import Script, ScriptedQuestion
from cotrail.errors import DatasetError


class _Hop(Struct, frozen=True):
    question: str
    answer: str


class _MuSiQueQuestion(Struct, frozen=True):
    """A question as published; test files have neither answers nor hops."""

    question: str
    answer: str | None = None
    answerable: bool = True
    question_decomposition: tuple[_Hop, ...] = ()


def oracle_script(path: Path) -> Script:
    """The gold chains of the answerable questions in a file of MuSiQue, one sentence a hop.

    Of questions with the same text the first counts, since a prompt shows nothing else of them.
    Raises DatasetError, which names the line, where one can't be used.
    """
    questions: dict[str, ScriptedQuestion] = {}
    for place, raw in lines(path, DatasetError):
        line = decode(raw, _MuSiQueQuestion, place, DatasetError)
        if line.answerable:
            questions.setdefault(line.question, _gold(line, place))
    if not questions:
        raise DatasetError(f"{path} holds no answerable questions; the oracle takes a file of MuSiQue's")
    return Script(name="oracle", questions=questions)


def _gold(line: _MuSiQueQuestion, place: str) -> ScriptedQuestion:
    if line.answer is None or not line.question_decomposition:
        raise DatasetError(
            f"{place}: the question has no answer or no question_decomposition, which the oracle's chain is made of; "
            "take a training or development file of MuSiQue"
        )
    hops = line.question_decomposition
    answers = tuple(hop.answer for hop in hops)
    sentences = tuple(statement(_filled(hop.question, answers[:n]), hop.answer) for n, hop in enumerate(hops))
    return ScriptedQuestion(sentences=sentences, answer=line.answer)


def _filled(question: str, answers: tuple[str, ...]) -> str:
    """A hop's question with the answers of earlier hops filled in; a reference to no earlier hop stays."""

    def answer(reference: re.Match[str]) -> str:
        number = int(reference[1])
        return answers[number - 1] if 1 <= number <= len(answers) else reference[0]

    # MuSiQue separates commas and possessives from the references before them.
    return _SEPARATED.sub("", _REFERENCE.sub(answer, question))


_REFERENCE = re.compile(r"#(\d{1,9})(?!\d)")
_SEPARATED = re.compile(r" (?=,|'s\b)")

LONGEST_FORM = 400
"""Characters of a question or a relation whose form is looked for; the longest that MuSiQue has are half as long.

A longer one counts as of no known form: the time that some of the forms take grows with a power of the length."""

_SHORT = rf"\A(?=.{{0,{LONGEST_FORM}}}\Z)"
_BE = "(?P<be>is|are|was|were)"
_WH = "(?:whom?|what|which)"
_SPOT = "(?:where|when|(?:in )?(?:what|which) (?:year|month|century|city|town|county|state|province|country|continent))"
_DONE = r"(?:\w+ed|born|held|built|found|made|written)"
_TO = "(?:of|in|into|from|at|on|for|by|with|to|after|as)"
_KIND = r"(?:what|which) (?P<kind>(?!(?:do|does|did)\b)[a-z]+(?: (?!(?:do|does|did)\b)[a-z]+){0,3}?)"
_VERB = r"(?P<verb>is|are|was|were|has|had|\w+ed|borders|owns|plays|won|wrote|made|sang|built|became|led|holds|held)"
_DID = r"(?P<did>do|does|did) (?P<subject>(?-i:[A-Z]\S*(?: (?:(?:of|the|and) )?[A-Z]\S*)*))"

_FORMS = tuple(
    (re.compile(rf"{_SHORT}(?:{pattern})", re.IGNORECASE), form)
    for pattern, form in (
        (r"how many (?P<what>(?:(?! (?:do|does|did) ).)+? (?:is|are|was|were|has|have|had) .+)", "{answer} {what}"),
        (
            rf"(?:where|{_WH}.*?) {_BE} (?P<what>.+?) (?P<tail>(?:(?:part|{_DONE}) )?{_TO})",
            "{what} {be} {tail} {answer}",
        ),
        (rf"{_SPOT} {_BE} (?P<what>.+) (?P<done>{_DONE})", "{what} {be} {done} in {answer}"),
        (rf"(?:where|when) {_BE} (?P<what>.+)", "{what} {be} in {answer}"),
        (rf"{_WH} {_BE} (?P<what>.+)", "{what} {be} {answer}"),
        (rf"(?P<what>.+) {_BE} {_WH}", "{what} {be} {answer}"),
        (rf"(?:{_SPOT}|{_WH}.*?) {_DID} (?P<what>.+ {_TO})", "{subject} {did} {what} {answer}"),
        (rf"{_SPOT} {_DID} (?P<what>.+)", "{subject} {did} {what} in {answer}"),
        (rf"{_WH}.*? {_DID} (?P<what>.+)", "{subject} {did} {what} {answer}"),
        (r"who (?!(?:do|does|did)\b)(?P<what>.+)", "{answer} {what}"),
        (rf"{_KIND} {_VERB} (?P<what>.+)", "the {kind} that {verb} {what} is {answer}"),
        (r"(?P<what>(?!.*\b(?:who|whom|what|which|where|when|how|why)\b).+)", "{what} {answer}"),
    )
)
"""Patterns that turn a plain question into a statement: the first match counts."""

_RELATIONS = (
    (
        re.compile(rf"{_SHORT}(?:(?:applies|shares|follows|has|replaces|contains|depicts) .+|follows|replaces)"),
        "{subject} {relation} {answer}",
    ),
    (re.compile(rf"{_SHORT}(?:instance|member) of.*"), "{subject} is {article} {relation} {answer}"),
    (re.compile(rf"{_SHORT}(?:part of|in .+|{_DONE}.*|.+ by)"), "{subject} is {relation} {answer}"),
)
"""The same for a relation, which is the label of a Wikidata property: a verb, a participle or otherwise a noun."""


def statement(question: str, answer: str) -> str:
    """A hop's question and answer as a sentence.

    It keeps the question's words, because later steps search for them. A question of no known form stands before its
    answer with a colon between.
    """
    subject, mark, relation = question.rpartition(" >> ")
    sentence = _related(subject.strip(), relation.strip(), answer) if mark else _answered(question, answer)
    return f"{sentence[:1].upper()}{sentence[1:].removesuffix('.')}."


def _related(subject: str, relation: str, answer: str) -> str:
    noun = "the {relation} of {subject} is {answer}"
    form = next((form for pattern, form in _RELATIONS if pattern.fullmatch(relation)), noun)
    article = "an" if relation.startswith("instance") else "a"
    return form.format(subject=subject, relation=relation, answer=answer, article=article)


def _answered(question: str, answer: str) -> str:
    plain = " ".join(question.split()).rstrip(" ?")
    answers = (
        form.format(**match.groupdict(), answer=answer)
        for pattern, form in _FORMS
        if (match := pattern.fullmatch(plain))
    )
    return next(answers, f"{plain}: {answer}" if plain else answer)
