"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs, and its records.

2WikiMultihopQA's and MoreHopQA's questions have the same form, with further fields.
"""

from collections.abc import Container, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.json_files import decode, entries, lines, records
from cotrail.core.questions import Question, joined, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import hub_rows, ircot_processed, spec
from cotrail.data.datasets.hub_rows import Context, Facts, published, row_paragraphs, supported
from cotrail.errors import CorpusError, DatasetError


class HotpotQuestion(Struct, frozen=True):
    """A question as published; test files have neither answers nor supporting facts."""

    id: str = msgspec.field(name="_id")
    question: str
    context: Context
    answer: str | None = None
    supporting_facts: Facts = ()
    type: str = ""
    level: str = ""


class _Contexts(Struct, frozen=True):
    context: Context


def annotated(entry: HotpotQuestion, answers: tuple[str, ...]) -> spec.AnnotatedQuestion:
    """The entry as a question with these answers; paragraphs with supporting facts are gold, with these sentences."""
    gold, distractors = spec.parted(supported(entry.context, entry.supporting_facts))
    kinds = named(type=entry.type, level=entry.level)
    question = Question(id=entry.id, text=entry.question, answers=answers, gold=gold, kinds=kinds)
    return spec.AnnotatedQuestion(question=question, distractors=distractors)


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs."""
    context = decode(raw, _Contexts, place, CorpusError).context
    return ((title, joined(sentences)) for title, sentences in context)


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, be it the publishers' own or of such rows."""
    for place, raw in records(path, DatasetError):
        entry = decode(published(place, raw), HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield spec.QuestionRecord(place=place, raw=raw, annotated=annotated(entry, answers))


def contexts_form(format_: str, reader: spec.ReadQuestions) -> spec.QuestionForm:
    """The form of questions with their contexts, in that format."""
    return spec.QuestionForm(
        format=spec.FORMATS[format_], read=reader, paragraphs=row_paragraphs, paragraphs_key="context"
    )


SPEC = spec.dataset(
    "hotpotqa",
    contexts_form("hotpotqa", read),
    contexts_form("hotpotqa_rows", read),
    ircot_processed.form("hotpotqa"),
    hub_rows.form(type="type", level="level"),
    recipe=spec.Recipe(
        needs="the unpacked dump of Wikipedia's abstracts, a folder of wiki_*.bz2",
        seems="to be a bz2 archive",
        files=hotpotqa_abstracts.files,
        records=hotpotqa_abstracts.records,
        paragraphs=hotpotqa_abstracts.paragraphs,
        paper_paragraphs=5_233_329,
    ),
)


# 2WikiMultihopQA's files (`train.json`, `dev.json`, `test.json`): HotpotQA's format, plus aliases of answers.
#
# The release with ids (`data_ids`) has `answer_id` and a file `id_aliases.json`: Wikidata's aliases and demonyms of an
# answer count as correct too (Alab-NII/2wikimultihop, `2wikimultihop_evaluate_v1.1.py`). They are used if that file
# lies next to the questions.


ALIASES = "id_aliases.json"
"""The file of aliases, next to the questions."""


class WikiMultihopQuestion(HotpotQuestion, frozen=True):
    """A question as published; in test files answers and supporting facts are empty."""

    answer_id: str | None = None


class _Names(Struct, frozen=True):
    """Aliases of an entity of Wikidata; a line of `id_aliases.json`."""

    id: str = msgspec.field(name="Q_id")
    aliases: tuple[str, ...] = ()
    demonyms: tuple[str, ...] = ()


def read_wikimultihop(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, all at once: the aliases file is large, and only the ids in use are kept of it."""
    questions = [
        (place, raw, decode(published(place, raw), WikiMultihopQuestion, place, DatasetError))
        for place, raw in records(path, DatasetError)
    ]
    names = _names(path.parent / ALIASES, {entry.answer_id for *_, entry in questions if entry.answer_id})
    for place, raw, entry in questions:
        answers = (entry.answer, *names.get(entry.answer_id or "", ())) if entry.answer else ()
        yield spec.QuestionRecord(place=place, raw=raw, annotated=annotated(entry, tuple(dict.fromkeys(answers))))


def _names(path: Path, ids: Container[str]) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    entries = (decode(raw, _Names, place, DatasetError) for place, raw in lines(path, DatasetError))
    return {each.id: (*each.aliases, *each.demonyms) for each in entries if each.id in ids}


WIKIMULTIHOP = spec.dataset(
    "2wikimultihopqa",
    contexts_form("2wikimultihopqa", read_wikimultihop),
    contexts_form("2wikimultihopqa_rows", read_wikimultihop),
    ircot_processed.form("2wikimultihopqa"),
    hub_rows.form(type="type"),
    recipe=spec.Recipe(
        needs="2WikiMultihopQA's train.json, dev.json and test.json",
        seems="to hold 2WikiMultihopQA's questions",
        records=hotpotqa_abstracts.items,
        paragraphs=paragraphs,
        paper_paragraphs=430_225,
    ),
)


# MoreHopQA's files (`morehopqa_final.json`, Schnitzler et al. 2024): HotpotQA's and others' questions, a step longer.
#
# A record also holds the question that it extends and a question for each step. The question itself is asked here, the
# first of the paper's six cases.


class _Step(Struct, frozen=True):
    """A step of the question; the title is empty where it needs no paragraph."""

    paragraph_support_title: str = ""


class MoreHopQuestion(HotpotQuestion, frozen=True):
    """A question as published; no_of_hops: the steps that it adds to the question it extends."""

    answer_type: str = ""
    reasoning_type: str = ""
    no_of_hops: int | None = None
    question_decomposition: tuple[_Step, ...] = ()


def read_morehop(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the paragraphs whose titles its steps name."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, MoreHopQuestion, place, DatasetError)
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=_annotated(entry))


def _annotated(entry: MoreHopQuestion) -> spec.AnnotatedQuestion:
    # It names paragraphs, and none of their sentences.
    facts = tuple((step.paragraph_support_title, -1) for step in entry.question_decomposition)
    answers = () if entry.answer is None else (entry.answer,)
    extended = annotated(replace(entry, supporting_facts=facts), answers)
    kinds = named(
        added_hops="" if entry.no_of_hops is None else str(entry.no_of_hops),
        answer_type=entry.answer_type,
        reasoning=entry.reasoning_type,
    )
    return replace(extended, question=replace(extended.question, kinds=kinds))


MOREHOP = spec.dataset(
    "morehopqa",
    spec.QuestionForm(
        format=spec.FORMATS["morehopqa"], read=read_morehop, paragraphs=paragraphs, paragraphs_key="context"
    ),
)
