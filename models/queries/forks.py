"""What forks took over from the runs that they were forked from."""

from sqlalchemy import Connection, exists, func, select

from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, steps


def count_taken_over(connection: Connection, run_id: str) -> tuple[int, int]:
    """Return how many steps a fork took over, and of how many questions the answer too."""
    taken = select(func.count()).where(steps.c.run_id == run_id, steps.c.adopted_from.is_not(None))
    computes = exists().where(steps.c.question_id == questions.c.id, steps.c.adopted_from.is_(None))
    finished = questions.c.run_id == run_id, questions.c.status == QuestionStatus.FINISHED
    whole = select(func.count()).select_from(questions).where(*finished, ~computes)
    return connection.execute(taken).scalar_one(), connection.execute(whole).scalar_one()
