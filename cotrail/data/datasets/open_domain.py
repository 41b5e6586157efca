"""Open-domain questions: NQ, TriviaQA, PopQA, Bamboogle and TempQuestions, which name no paragraphs, and FRAMES."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries, records
from cotrail.common.text_files import opened, read_whole
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.datasets import hub_rows, infotabs, spec
from cotrail.errors import DatasetError

# Natural Questions' open form (`NQ-open.dev.jsonl`, Lee et al. 2019): a question a line, without an id.


class OpenQuestion(Struct, frozen=True):
    """A question as published."""

    question: str
    answer: tuple[str, ...] = ()


def read_nq(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, equal lines once; an id is the SHA-256 of the question and its answers."""
    seen = set()
    for place, raw in records(path, DatasetError):
        line = decode(raw, OpenQuestion, place, DatasetError)
        if line in seen:
            continue
        seen.add(line)
        question = Question(id=spec.id_of(line.question, *line.answer), text=line.question, answers=line.answer)
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


NATURAL_QUESTIONS = spec.dataset("nq", spec.QuestionForm(format=spec.FORMATS["nq"], read=read_nq), hub_rows.form())


# TriviaQA's unfiltered files (`unfiltered-web-dev.json`, Joshi et al. 2017): one object with a list of questions.


class _File(Struct, frozen=True, rename="pascal"):
    data: tuple[msgspec.Raw, ...]


class _Answer(Struct, frozen=True, rename="pascal"):
    """An answer, the names of the page of Wikipedia that has it as its title, and both normalized."""

    value: str
    aliases: tuple[str, ...] = ()
    normalized_aliases: tuple[str, ...] = ()


class TriviaQuestion(Struct, frozen=True, rename="pascal"):
    """A question as published; test files have no answers."""

    question_id: str
    question: str
    answer: _Answer | None = None


def read_trivia(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, which is held in memory."""
    with opened(path, DatasetError) as file:
        content = read_whole(file, str(path), DatasetError)
    for number, raw in enumerate(decode(content, _File, str(path), DatasetError).data, start=1):
        place = f"{path}, question {number}"
        entry = decode(raw, TriviaQuestion, place, DatasetError)
        question = Question(id=entry.question_id, text=entry.question.strip(), answers=_answers(entry.answer))
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=question))


def _answers(answer: _Answer | None) -> tuple[str, ...]:
    """The answer and its other names. The official script compares with the normalized ones alone."""
    if answer is None:
        return ()
    return spec.accepted_answers((answer.value, *answer.aliases, *answer.normalized_aliases))


def wrapped(_path: Path, questions: Sequence[bytes]) -> bytes:
    """A file of these questions."""
    return b'{"Data": [' + b",\n".join(questions) + b"]}\n"


TRIVIAQA = spec.dataset(
    "triviaqa",
    spec.QuestionForm(format=spec.FORMATS["triviaqa"], read=read_trivia, written=wrapped, suffix=".json"),
    hub_rows.form(),
)


# PopQA's table (`popQA.tsv`, Mallen et al. 2023): questions made of facts of Wikidata, popular and not.


class PopQuestion(Struct, frozen=True):
    """A question as published; possible_answers: a JSON list in a string. prop: the relation that is asked for."""

    id: int | str
    question: str
    possible_answers: str
    prop: str = ""


def read_pop(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file."""
    for place, raw, row in infotabs.records(path, PopQuestion):
        answers = decode(row.possible_answers.encode(), tuple[str, ...], f"{place}, possible_answers", DatasetError)
        question = Question(
            id=str(row.id),
            text=row.question.strip(),
            answers=spec.accepted_answers(answers),
            kinds=named(relation=row.prop),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


POPQA = spec.dataset(
    "popqa",
    spec.QuestionForm(format=spec.FORMATS["popqa"], read=read_pop, written=infotabs.written),
    hub_rows.form(relation="prop"),
)


# Bamboogle's table (Press et al. 2023): 125 questions of two steps, without ids.
#
# It is published as a spreadsheet, whose columns are `Question`, `Answer` and in some copies `Answer 2`.


class BamboogleQuestion(Struct, frozen=True):
    """A question as published; other: a second form of the answer."""

    question: str = msgspec.field(name="Question")
    answer: str = msgspec.field(name="Answer")
    other: str | None = msgspec.field(name="Answer 2", default=None)


def read_bamboogle(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; an id is the SHA-256 of the question."""
    for place, raw, row in infotabs.records(path, BamboogleQuestion):
        question = Question(
            id=spec.id_of(row.question.strip()),
            text=row.question.strip(),
            answers=spec.accepted_answers((row.answer, row.other or "")),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


BAMBOOGLE = spec.dataset("bamboogle", *infotabs.table_forms("bamboogle", read_bamboogle), hub_rows.form())


# FRAMES' table (`test.tsv`, Krishna et al. 2024): 824 questions, each with the pages of Wikipedia that it needs.

_AROUND = "[](){}<>\"',;"
"""What may stand around a link in a list; a closing parenthesis may be a title's own."""


def titles_of(text: str) -> tuple[str, ...]:
    """The titles of the pages that links in a text lead to, each once and in order; links to elsewhere have none."""
    return tuple(dict.fromkeys(filter(None, map(_title, _links(text)))))


def _links(text: str) -> Iterator[str]:
    """The links in a text: in a list of any form, or with remarks between them."""
    words = text.replace("https://", " https://").replace("http://", " http://").split()
    stripped = (word.lstrip(_AROUND).rstrip(_AROUND.replace(")", "")) for word in words)
    return (word for word in stripped if word.startswith(("https://", "http://")))


def _title(link: str) -> str:
    """The title of the page, without a section of it; empty where the link leads to no page of Wikipedia."""
    try:
        parts = urlsplit(link)
        host = parts.hostname or ""
    except ValueError:  # brackets that are no address
        return ""
    if not host.endswith("wikipedia.org"):
        return ""
    _, mark, name = parts.path.partition("/wiki/")
    name = unquote(name) if mark else next(iter(parse_qs(parts.query).get("title", [])), "")
    title = " ".join(name.replace("_", " ").split())
    return "" if title.startswith("Special:") else title[:1].upper() + title[1:]


class FramesQuestion(Struct, frozen=True):
    """A question as published; some copies as JSON have it as `Question`.

    links: a list as Python writes it, in copies as JSON a list too.
    """

    answer: str = msgspec.field(name="Answer")
    links: str | tuple[str, ...] = msgspec.field(name="wiki_links")
    reasoning: str = msgspec.field(name="reasoning_types")
    prompt: str | None = msgspec.field(name="Prompt", default=None)
    question: str | None = msgspec.field(name="Question", default=None)


def read_frames(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the pages linked, any passage of them. An id is the question's SHA-256."""
    for place, raw, row in infotabs.records(path, FramesQuestion):
        text = row.prompt if row.prompt is not None else row.question
        if text is None:
            raise DatasetError(f"{place}: there is no Prompt; add it or take the record out")
        titles = titles_of(row.links if isinstance(row.links, str) else " ".join(row.links))
        question = Question(
            id=spec.id_of(text.strip()),
            text=text.strip(),
            answers=spec.accepted_answers((row.answer,)),
            gold=tuple(GoldParagraph(title=title, text="", by="title") for title in titles),
            kinds=named(reasoning=row.reasoning.strip(), pages=str(len(titles)) if titles else ""),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


FRAMES = spec.dataset("frames", *infotabs.table_forms("frames", read_frames))


# TempQuestions' file (`TempQuestions.json`, Jia et al. 2018): a list of 1,271 questions about time.
#
# As in Rethinking with Retrieval (section 4.3), the 175 questions of type implicit with a single answer are read,
# without the first six of them, which are the paper's prompt (table 6): 169 remain.

PROMPT_IDS = frozenset({"3", "7", "11", "16", "20", "21"})
"""Ids of the questions in the paper's prompt. Ids, not positions, so that they are right for a partial file too."""


class TempQuestion(Struct, frozen=True):
    """A question as published; `types`: `Explicit`, `Implicit` (once `Implicit:`), `Temp.Ans`, `Ordinal`."""

    id: int | str = msgspec.field(name="Id")
    question: str = msgspec.field(name="Question")
    answers: tuple[str, ...] = msgspec.field(name="Gold answer")
    types: tuple[str, ...] = msgspec.field(name="Type")
    signals: tuple[str, ...] = msgspec.field(name="Temporal signal", default=())


def read_temporal(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the implicit questions with one answer, without the paper's prompt; `signal` is of kind e.g. `OVERLAP`."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, TempQuestion, place, DatasetError)
        is_implicit = any(each.rstrip(":") == "Implicit" for each in entry.types)
        if is_implicit and len(entry.answers) == 1 and str(entry.id) not in PROMPT_IDS:
            question = Question(
                id=str(entry.id),
                text=entry.question,
                answers=entry.answers,
                kinds=named(signal=",".join(entry.signals)),
            )
            yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=question))


TEMPQUESTIONS = spec.dataset(
    "tempquestions", spec.QuestionForm(format=spec.FORMATS["tempquestions"], read=read_temporal)
)
