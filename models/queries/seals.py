"""What of a run is sealed, and since when."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, func, select

from cotrail.models.schema.tables import questions


class SealedQuestions(Struct, frozen=True, kw_only=True):
    """The questions of a run: how many there are, how many are sealed, and when the first and the last one were."""

    questions: int
    sealed: int
    first_at: datetime | None
    last_at: datetime | None


def read_sealed_questions(connection: Connection, run_id: str) -> SealedQuestions:
    """Return how many of a run's questions are sealed, and when they were."""
    sealed = questions.c.digest.is_not(None)
    statement = select(
        func.count().label("questions"),
        func.count(questions.c.digest).label("sealed"),
        func.min(questions.c.finished_at).filter(sealed).label("first_at"),
        func.max(questions.c.finished_at).filter(sealed).label("last_at"),
    ).where(questions.c.run_id == run_id)
    return SealedQuestions(**connection.execute(statement).mappings().one())
