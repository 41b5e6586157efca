"""Oracle: MuSiQue's gold chains of thought in place of a model, the upper bound of a system that reasons correctly.

MuSiQue's `question_decomposition` has the hops of a question, each with its gold answer (Trivedi et al., TACL 2022). A
hop is a plain question or "subject >> relation"; `#1` in it stands for the first hop's answer.
"""

import re
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.common.toml_files import read_toml
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

_TABLE = read_toml(Path(__file__).with_suffix(".toml"))


def _whole(pattern: str) -> str:
    for name, part in _TABLE["parts"].items():
        pattern = pattern.replace(f"%{name}%", part)
    return rf"\A(?=.{{0,{LONGEST_FORM}}}\Z)(?:{pattern})"


_FORMS = tuple((re.compile(_whole(each["pattern"]), re.IGNORECASE), each["form"]) for each in _TABLE["questions"])
_RELATIONS = tuple((re.compile(_whole(each["pattern"])), each["form"]) for each in _TABLE["relations"])


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
