"""Results of evidence steps as lines of text, for terminals and pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from cotrail.common.humanize import count
from cotrail.common.printable_text import cut, one_line
from cotrail.common.short_digests import shortened
from cotrail.core.paragraphs import Paragraph
from cotrail.models.queries.traces import TracedStep

NAME = 60
"""The characters of a sentence without a title that name it."""


def name_of(paragraph: Paragraph) -> str:
    """The paragraph's title; a knowledge source's sentence is its own name."""
    return paragraph.title or cut(paragraph.text, NAME)


def named(digest: str, names: Mapping[str, str]) -> str:
    """The name of a paragraph in one line, or its digest where it has none; names: by digest."""
    return one_line(names.get(digest, shortened(digest)))


def comparison(step: TracedStep, names: Mapping[str, str]) -> str | None:
    """The result of an embed or an entail step; None where it has none."""
    if step.entailed is not None:
        found = step.entailed
        shares = f"{found.entailment:.2f} entailed, {found.neutral:.2f} neutral, {found.contradiction:.2f} contradicted"
        return f"{shares}  by {named(step.against[0], names)}"
    if step.embedded is None:
        return None
    if not step.against:
        return f"{count(len(step.compared), 'sentence')} with one another"
    row = step.embedded.similarities[0]
    best = max(range(len(row)), key=row.__getitem__)
    return f"{row[best]:.2f} like {named(step.against[best], names)}, the nearest of {len(row)}"


def ratings(request: Mapping[str, Any], result: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each score of a rate step, and what it is of."""
    others = [*map(one_line, request["others"]), *(named(digest, names) for digest in request["paragraphs"])]
    for score, other in zip(result["scores"], others, strict=True):
        yield f"{score:.2f}", other
