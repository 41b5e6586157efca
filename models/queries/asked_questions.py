"""The questions of a run and where they stand, without what happened to them."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection, case, select

from cotrail.core.question_kinds import read_kinds
from cotrail.models.records.question_ids import FETCHED_IDS
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question of a run; key: its id in the dataset; kinds: those that the dataset counts it among."""

    key: str
    text: str
    kinds: Mapping[str, str]
    status: str

    @property
    def has_ended(self) -> bool:
        """Return whether it has an answer, or failed."""
        return self.status in (QuestionStatus.FINISHED, QuestionStatus.FAILED)


def read_asked(connection: Connection, run_id: str) -> Iterator[AskedQuestion]:
    """Yield the questions of a run by position."""
    columns = questions.c.key, questions.c.text, questions.c.kind, questions.c.status
    query = select(*columns).where(questions.c.run_id == run_id)
    ordered = query.order_by(questions.c.position, questions.c.id).execution_options(yield_per=FETCHED_IDS)
    for key, text, kind, status in connection.execute(ordered):
        yield AskedQuestion(key=key, text=text, kinds=read_kinds(kind), status=status)


def read_answers(connection: Connection, run_id: str, keys: Sequence[str]) -> dict[str, str | None]:
    """Return the answers to these questions by their ids, None where there is none."""
    answer = case((questions.c.status == QuestionStatus.FINISHED, questions.c.answer))
    query = select(questions.c.key, answer).where(questions.c.run_id == run_id, questions.c.key.in_(keys))
    return dict(connection.execute(query).all())
