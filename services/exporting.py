"""Runs for other programs: everything recorded for each question, or files for the official evaluation scripts."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from cotrail.common.printable_text import printable_json
from cotrail.core.actions.registry import has_prompt
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import Collected, TracedQuestion, TracedStep
from cotrail.services.gold_paragraphs import gold_paragraphs
from cotrail.services.scoring import scores_of

Format = Literal["jsonl", "hotpotqa", "musique"]


def lines(record: RunRecord, questions: Iterable[TracedQuestion], form: Format) -> Iterator[bytes]:
    """The lines of a run's file in that format."""
    match form:
        case "jsonl":
            for question in questions:
                yield _encode(row(record, question)) + b"\n"
        case "musique":
            for question in questions:
                yield _encode(_musique(question)) + b"\n"
        case "hotpotqa":
            yield _encode(_hotpotqa(questions)) + b"\n"


def row(record: RunRecord, question: TracedQuestion) -> dict[str, Any]:
    """All about a question; an unfinished one has what is recorded so far, and scores of 0."""
    return {
        **_outcome(question),
        "sentences": question.sentences,
        "details": question.details,
        "paragraphs": [_paragraph(each, question) for each in question.collected],
        "gold_paragraphs": gold_paragraphs(question, record.dataset),
        **scores_of(record, question),
        "reason": question.reason,
    }


def _outcome(question: TracedQuestion) -> dict[str, Any]:
    return {
        "question_id": question.key,
        "question": question.text,
        "status": question.status,
        "answer": question.answer,
        "gold_answers": question.answers,
        "kinds": question.kinds,
    }


def _paragraph(each: Collected, question: TracedQuestion) -> dict[str, Any]:
    return {
        "id": each.paragraph.id,
        "title": each.paragraph.title,
        "text": each.paragraph.text,
        "step": each.step,
        "rank": each.rank,
        "score": each.score,
        "query": each.query,
        "gold": is_gold(each.paragraph, question.gold),
    }


def _musique(question: TracedQuestion) -> dict[str, Any]:
    """The support indexes count within the dataset's own paragraphs, which a search of a corpus doesn't know."""
    return {
        "id": question.key,
        "predicted_answer": question.stated or question.answer or "",
        "predicted_support_idxs": [],
        "predicted_answerable": True,
    }


def _hotpotqa(questions: Iterable[TracedQuestion]) -> dict[str, Any]:
    """Supporting facts as the first sentence of each collected paragraph: cotrail retrieves whole paragraphs."""
    answers, facts = {}, {}
    for question in questions:
        answers[question.key] = question.stated or question.answer or ""
        facts[question.key] = [[paragraph.title, 0] for paragraph in question.paragraphs]
    return {"answer": answers, "sp": facts}


def trace(record: RunRecord, traced: TracedQuestion) -> dict[str, Any]:
    """A question with all its steps."""
    return {
        "run": record.id,
        **_outcome(traced),
        "gold_paragraphs": gold_paragraphs(traced, record.dataset),
        **scores_of(record, traced),
        "reason": traced.reason,
        "sentences": traced.sentences,
        "details": traced.details,
        "steps": [_step(step, traced) for step in traced.steps],
    }


def _step(step: TracedStep, traced: TracedQuestion) -> dict[str, Any]:
    common = ("sequence", "kind", "state", "worker", "attempts", "milliseconds", "adopted", "failure")
    fields = {name: getattr(step, name) for name in common}
    if step.generated is not None or has_prompt(step.kind):
        return {**fields, "sample": step.sample, "paragraphs": step.paragraphs, "generated": step.generated}
    if step.request is not None:
        return {**fields, "request": step.request, "result": step.result}
    if step.compared:
        found = step.embedded or step.entailed
        return {**fields, "sentences": step.compared, "paragraphs": step.against, "found": found}
    hits = [
        {
            "rank": hit.rank,
            "score": hit.score,
            **msgspec.structs.asdict(hit.paragraph),
            "new": hit.paragraph.digest in step.new,
            "gold": is_gold(hit.paragraph, traced.gold),
        }
        for hit in step.hits
    ]
    return {**fields, "query": step.query, "source": step.source, "hits": hits}


def _encode(value: Any) -> bytes:
    """JSON in one line, with escapes for what a terminal would obey."""
    return printable_json(msgspec.json.encode(value))
