"""StrategyQA's files (`strategyqa_train.json`, `dev.json`, `strategyqa_test.json`): a list of yes/no questions.

Evidence is given as ids of paragraphs, e.g. `Albany, Georgia-1`, in `strategyqa_train_paragraphs.json`
(eladsegal/strategyqa). Up to three annotators worked independently; the union of their evidence counts.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.json_files import decode, entries
from cotrail.common.text_files import MAX_RECORD_BYTES, opened, read_whole
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.datasets import spec
from cotrail.errors import CorpusError, DatasetError

# StrategyQA as a task of BIG-bench (`bigbench/benchmark_tasks/strategyqa/task.json`): one JSON object with examples.
#
# Search-in-the-Chain is evaluated on it (section 4.1). It has the questions and their answers, and neither ids nor
# evidence.


class _Task(Struct, frozen=True):
    examples: tuple[msgspec.Raw, ...]


class _Scores(Struct, frozen=True):
    """1 for the right answer, 0 for the other."""

    yes: float = msgspec.field(name="Yes")
    no: float = msgspec.field(name="No")


class _Example(Struct, frozen=True):
    input: str
    target_scores: _Scores


def read_big_bench(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the examples of the file, equal ones once; an id is the SHA-256 of the question."""
    with opened(path, DatasetError) as file:
        content = read_whole(file, str(path), DatasetError, MAX_RECORD_BYTES)
    seen = set()
    for number, raw in enumerate(decode(content, _Task, str(path), DatasetError).examples, start=1):
        place = f"{path}, example {number}"
        example = decode(raw, _Example, place, DatasetError)
        if example not in seen:
            seen.add(example)
            yield spec.QuestionRecord(
                place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=_question(example))
            )


def wrapped(_path: Path, examples: Sequence[bytes]) -> bytes:
    """A file of these examples."""
    return b'{"examples": [' + b",\n".join(examples) + b"]}\n"


def _question(example: _Example) -> Question:
    text = example.input.strip()
    right = example.target_scores.yes > example.target_scores.no
    return Question(id=spec.id_of(text), text=text, answers=(spec.YES_OR_NO[right],))


FORM = spec.QuestionForm(format=spec.FORMATS["big_bench"], read=read_big_bench, written=wrapped, suffix=".json")
"""A single object with a list of examples."""

NO_PARAGRAPH_MARKERS = frozenset({"operation", "no_evidence"})
"""Markers of a step that needs no paragraphs, or for which none was found."""

AnnotatedStep = tuple[str | tuple[str, ...], ...]
"""One annotator's evidence for one step of the decomposition: paragraph ids and markers."""


class StrategyQuestion(Struct, frozen=True):
    """A question as published; test files have the question alone."""

    qid: str
    question: str
    term: str = ""
    answer: bool | None = None
    facts: tuple[str, ...] = ()
    evidence: tuple[tuple[AnnotatedStep, ...], ...] = ()


class _Evidence(Struct, frozen=True):
    title: str
    content: str


def read(path: Path, lookup: spec.ParagraphLookup | None, *, facts: bool = False) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the evidence paragraphs that the corpus has under their ids.

    facts: whether a question pins its annotators' facts as a passage without a title (the gold facts of table 7 of
        Rethinking with Retrieval).
    """
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, StrategyQuestion, place, DatasetError)
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=_annotated(entry, lookup, facts=facts))


def _annotated(entry: StrategyQuestion, lookup: spec.ParagraphLookup | None, *, facts: bool) -> spec.AnnotatedQuestion:
    ids = evidence_ids(entry)
    paragraphs = lookup(ids) if lookup else {}
    evidence = tuple(
        dict.fromkeys(
            GoldParagraph(title=paragraphs[id_].title, text=paragraphs[id_].text)
            if id_ in paragraphs
            else title_of(id_)
            for id_ in ids
        )
    )
    fact_text = " ".join(map(_sentence, entry.facts))
    question = Question(
        id=entry.qid,
        text=entry.question,
        answers=() if entry.answer is None else (spec.YES_OR_NO[entry.answer],),
        gold=tuple(each for each in evidence if isinstance(each, GoldParagraph)),
        pinned=GoldParagraph(title="", text=fact_text) if facts and fact_text else None,
        evidence=evidence,
    )
    return spec.AnnotatedQuestion(question=question, chain=_chain(entry))


def evidence_ids(entry: StrategyQuestion) -> tuple[str, ...]:
    """Ids of the evidence paragraphs, each once, in the order of annotators and steps."""
    items = (item for steps in entry.evidence for step in steps for item in step)
    ids = (id_ for item in items for id_ in ((item,) if isinstance(item, str) else item))
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ not in NO_PARAGRAPH_MARKERS))


def title_of(id_: str) -> str:
    """The title of a paragraph's page: the id without the number after the last hyphen."""
    title, _, number = id_.rpartition("-")
    return title if number.isdecimal() else id_


def _chain(entry: StrategyQuestion) -> tuple[str, ...]:
    """A chain of the facts as sentences and the answer; empty without them, as in test files."""
    if entry.answer is None or not entry.facts:
        return ()
    return (*map(_sentence, entry.facts), f"So the answer is {spec.YES_OR_NO[entry.answer]}.")


def _sentence(fact: str) -> str:
    stripped = fact.strip()
    return stripped if stripped.endswith((".", "!", "?")) else f"{stripped}."


def fact_paragraphs(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The facts of a question, each titled with the term that the question was written about."""
    entry = decode(raw, StrategyQuestion, place, CorpusError)
    return ((entry.term, fact.strip()) for fact in entry.facts if fact.strip())


def evidence_paragraph(place: str, raw: bytes) -> Paragraph:
    """The paragraph of a member of `strategyqa_train_paragraphs.json`, given as a pair of its id and its content."""
    id_, evidence = decode(raw, tuple[str, _Evidence], place, CorpusError)
    return Paragraph(id=id_, title=evidence.title, text=evidence.content)


_FORM = spec.QuestionForm(format=spec.FORMATS["strategyqa"], read=read, paragraphs=fact_paragraphs)

SPEC = spec.dataset("strategyqa", _FORM, FORM)

WITH_FACTS = spec.dataset("strategyqa-facts", replace(_FORM, read=partial(read, facts=True)))
