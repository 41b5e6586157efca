"""The questions of a run and where they stand, without what happened to them."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from sqlalchemy import Connection, select

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
