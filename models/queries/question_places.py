"""Where a question stands among those of its run."""

from msgspec import Struct
from sqlalchemy import Connection, func, select, union_all

from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, runs


class QuestionPlace(Struct, frozen=True, kw_only=True):
    """The number of a question among those of its run, from 1, and the ids of its neighbours; None at the ends."""

    number: int
    questions: int
    previous: str | None
    next: str | None


def read_place(connection: Connection, run_id: str, question_id: int) -> QuestionPlace:
    """Return the place of a question, by its id in the table."""
    place = select(questions.c.position, runs.c.size).join_from(questions, runs, questions.c.run_id == runs.c.id)
    row = connection.execute(place.where(questions.c.id == question_id)).one()
    return QuestionPlace(
        number=row.position + 1,
        questions=row.size,
        previous=_nearest(connection, run_id, question_id, behind=False),
        next=_nearest(connection, run_id, question_id, behind=True),
    )


def _nearest(connection: Connection, run_id: str, question_id: int, *, behind: bool) -> str | None:
    # Ids are given in the order of the positions, and the index of a run's questions by status ends with them.
    number, best = questions.c.id, func.min if behind else func.max
    beyond = number > question_id if behind else number < question_id
    of_status = (
        select(best(number).label("id")).where(questions.c.run_id == run_id, questions.c.status == status, beyond)
        for status in QuestionStatus
    )
    nearest = select(best(union_all(*of_status).subquery().c.id)).scalar_subquery()
    return connection.execute(select(questions.c.key).where(number == nearest)).scalar()
