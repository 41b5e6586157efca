"""Questions whose searches found a paragraph: a page of them."""

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.models.queries.paragraph_uses import Place, list_uses
from cotrail.models.schema.states import QuestionStatus

LARGEST = 2**63 - 1


class ParagraphUse(Struct, frozen=True, kw_only=True):
    """A search that found the paragraph, and its question; collected: whether the answer rests on the paragraph too.

    rank: from 1; score: the engine's; paragraph_id: the paragraph's name in the corpus that was searched.
    """

    run: str
    question_id: str
    question: str
    status: QuestionStatus
    query: str
    rank: int
    score: float
    paragraph_id: str
    collected: bool


class ParagraphUses(Struct, frozen=True, kw_only=True):
    """Searches, the latest first; after: names the page that follows, None where none does."""

    uses: tuple[ParagraphUse, ...]
    after: str | None


def read_uses(connection: Connection, digest: str, limit: int, after: str | None = None) -> ParagraphUses:
    """A page of the searches that found the paragraph of this digest; raises InputError for an `after` of no page."""
    rows = list_uses(connection, digest, limit + 1, None if after is None else _place(after))
    page = rows[:limit]
    uses = tuple(
        ParagraphUse(
            **{name: row[name] for name in ParagraphUse.__struct_fields__ if name != "collected"},
            collected=digest in (row["collected"] or ()),
        )
        for row in page
    )
    last = f"{page[-1]['step_id']}.{page[-1]['rank']}" if len(rows) > limit else None
    return ParagraphUses(uses=uses, after=last)


def _place(text: str) -> Place:
    parts = text.split(".")
    if len(parts) != len(Place._fields) or not all(each.isascii() and each.isdigit() for each in parts):
        raise InputError(f"{text!r} is the end of no page; take `after` of the page before")
    return Place(*(min(int(each[:20]), LARGEST) for each in parts))
