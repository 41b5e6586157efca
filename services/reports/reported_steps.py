"""Steps as a run's page shows them."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut, one_line
from cotrail.core.actions.extract import EXTRACT
from cotrail.core.actions.open import OPEN
from cotrail.core.actions.rate import RATE
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.services.evidence_texts import comparison, name_of, named, ratings
from cotrail.services.written_facts import written_facts

SNIPPET = 190
"""Characters of a paragraph beside a sentence; each whole paragraph is at the end of the page, once."""


class ReportedHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search added."""

    title: str
    snippet: str
    anchor: str
    rank: int
    score: str
    gold: bool


class ReportedStep(Struct, frozen=True, kw_only=True):
    """A step; asked: what it was about, such as a query; verb: what a search did with it; text: what came out of it."""

    sequence: int
    kind: str
    verb: str = ""
    asked: str = ""
    text: str = ""
    found: tuple[ReportedHit, ...] = ()
    note: str = ""
    failed: bool = False


def anchor_of(digest: str) -> str:
    """The id of a paragraph on the page."""
    return f"p-{digest}"


def names_in(question: TracedQuestion) -> dict[str, str]:
    """The names of all paragraphs that a question found, by digest."""
    return {digest: name_of(paragraph) for digest, paragraph in found_in(question).items()}


def found_in(question: TracedQuestion) -> dict[str, Paragraph]:
    """All paragraphs that a question found or collected, by digest."""
    found = (hit.paragraph for step in question.steps for hit in step.hits)
    return {paragraph.digest: paragraph for paragraph in (*found, *question.paragraphs)}


def reported_step(
    step: TracedStep, question: TracedQuestion, names: Mapping[str, str], *, turn: str = ""
) -> ReportedStep:
    """The step; names: of the question's paragraphs, by digest; turn: what it is in a conversation, empty in others."""
    blank = ReportedStep(sequence=step.sequence, kind=step.kind)
    if step.failure:
        return replace(blank, text=f"{step.failure.type}: {step.failure.message}", failed=True)
    if step.query is not None:
        return _searched(step, question)
    if step.compared:
        (asked, *others) = step.compared
        note = comparison(step, names) or ("nothing to compare with" if step.state == "finished" else step.state)
        return replace(blank, asked="" if others else asked, note=note)
    if step.request is not None:
        return _other(step, names)
    if step.generated is None:
        return replace(blank, note=step.state)
    chain = [] if step.sample is None else [f"chain {step.sample + 1}"]
    note = ", ".join((*filter(None, (turn,)), *chain, *written_facts(step)))
    return replace(blank, text=step.generated.text or "nothing", note=note)


def _searched(step: TracedStep, question: TracedQuestion) -> ReportedStep:
    found = tuple(_hit(hit, question) for hit in step.hits if hit.paragraph.digest in step.new)
    others = "; ".join(one_line(name_of(hit.paragraph)) for hit in step.hits if hit.paragraph.digest not in step.new)
    verb = "opened" if step.kind == OPEN.name else f"asked {step.source} about" if step.source else "searched for"
    note = f"found too, but there already or left out: {others}" if others else ""
    if not step.hits:
        note = "nothing was found" if step.state == "finished" else step.state
    return ReportedStep(
        sequence=step.sequence,
        kind=step.kind,
        verb=verb,
        asked=step.query or "",
        found=found,
        note=note,
    )


def _other(step: TracedStep, names: Mapping[str, str]) -> ReportedStep:
    """An extract or a rate step; request and result of a kind that has no form of its own here."""
    blank, request, result = ReportedStep(sequence=step.sequence, kind=step.kind), step.request or {}, step.result
    if result is None:
        return replace(blank, note=step.state)
    if step.kind == EXTRACT.name:
        note = f"confidence {result['confidence']:.2f}, in {named(request['paragraphs'][0], names)}"
        return replace(blank, asked=request["question"], text=result["text"] or "no answer", note=note)
    if step.kind == RATE.name:
        note = "\n".join(f"{score}  {other}" for score, other in ratings(request, result, names))
        return replace(blank, asked=request["text"], note=f"by {request['by']}:\n{note}")
    return replace(blank, note=f"{_json(request)}\n{_json(result)}")


def _hit(hit: Hit, question: TracedQuestion) -> ReportedHit:
    return ReportedHit(
        title=name_of(hit.paragraph),
        snippet=cut(hit.paragraph.text, SNIPPET),
        anchor=anchor_of(hit.paragraph.digest),
        rank=hit.rank,
        score=f"{hit.score:.1f}",
        gold=is_gold(hit.paragraph, question.gold),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
