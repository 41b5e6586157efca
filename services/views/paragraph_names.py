"""Names of the paragraphs that a question found, for what refers to them by their digests."""

from collections.abc import Mapping

from cotrail.common.printable_text import one_line
from cotrail.common.short_digests import shortened
from cotrail.core.paragraphs import Paragraph
from cotrail.core.views import name_of
from cotrail.models.queries.traces import TracedQuestion


def found_in(question: TracedQuestion) -> dict[str, Paragraph]:
    """All paragraphs that a question found or collected, by digest."""
    paragraphs = (hit.paragraph for step in question.steps for hit in step.hits)
    return {paragraph.digest: paragraph for paragraph in (*paragraphs, *question.paragraphs)}


def names_in(question: TracedQuestion) -> dict[str, str]:
    """The names of all paragraphs that a question found or collected, by digest."""
    return {digest: name_of(paragraph) for digest, paragraph in found_in(question).items()}


def named(digest: str, names: Mapping[str, str]) -> str:
    """The name of a paragraph in one line, or its digest where it has none; names: by digest."""
    return one_line(names.get(digest, shortened(digest)))
