"""MoreHopQA's files (`morehopqa_final.json`, Schnitzler et al. 2024): HotpotQA's and others' questions, a step longer.

A record also holds the question that it extends and a question for each step. The question itself is asked here, the
first of the paper's six cases.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.json_files import decode, entries
from cotrail.core.questions import named
from cotrail.data.datasets import hotpotqa, spec
from cotrail.errors import DatasetError


class _Step(Struct, frozen=True):
    """A step of the question; the title is empty where it needs no paragraph."""

    paragraph_support_title: str = ""


class MoreHopQuestion(hotpotqa.HotpotQuestion, frozen=True):
    """A question as published; no_of_hops: the steps that it adds to the question it extends."""

    answer_type: str = ""
    reasoning_type: str = ""
    no_of_hops: int | None = None
    question_decomposition: tuple[_Step, ...] = ()


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the paragraphs whose titles its steps name."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, MoreHopQuestion, place, DatasetError)
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=_annotated(entry))


def _annotated(entry: MoreHopQuestion) -> spec.AnnotatedQuestion:
    # It names paragraphs, and none of their sentences.
    facts = tuple((step.paragraph_support_title, -1) for step in entry.question_decomposition)
    answers = () if entry.answer is None else (entry.answer,)
    annotated = hotpotqa.annotated(replace(entry, supporting_facts=facts), answers)
    kinds = named(
        added_hops="" if entry.no_of_hops is None else str(entry.no_of_hops),
        answer_type=entry.answer_type,
        reasoning=entry.reasoning_type,
    )
    return replace(annotated, question=replace(annotated.question, kinds=kinds))


SPEC = spec.dataset(
    "morehopqa",
    spec.QuestionForm(
        format=spec.FileFormat("MoreHopQA's questions", True, frozenset({"_id", "question", "previous_question"})),
        read=read,
        paragraphs=hotpotqa.paragraphs,
        paragraphs_key="context",
    ),
)
