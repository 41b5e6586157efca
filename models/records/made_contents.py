"""Contents that systems make themselves: paragraphs that no search found, demonstrations that the run didn't bring."""

from collections.abc import Sequence

from sqlalchemy import Connection

from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.history import Recorded, Step
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Retrieved
from cotrail.models.records.contents import save_demonstrations, save_paragraphs
from cotrail.models.records.runs import RunPlan
from cotrail.models.schema.rows import Rows, insert_rows
from cotrail.models.schema.tables import made_paragraphs

_NEW_REFERENCES = insert_rows(made_paragraphs, "question_id", "digest").on_conflict_do_nothing()


class MadeContents:
    """Contents made by systems that the next steps of some questions refer to."""

    def __init__(self) -> None:
        self._paragraphs: dict[str, Paragraph] = {}
        self._demonstrations: dict[str, Demonstrations] = {}
        self._references: Rows = []

    def add(self, question_id: int, following: Sequence[Step], history: Sequence[Recorded], plan: RunPlan) -> None:
        """Add what these steps of a question refer to; history, plan: the question's steps so far, and its run."""
        made = _made(following, history)
        self._references += ({"question_id": question_id, "digest": digest} for digest in made)
        self._paragraphs |= made
        self._demonstrations |= _brought(following, plan)

    def save(self, connection: Connection) -> None:
        """Store what isn't stored yet."""
        save_paragraphs(connection, self._paragraphs)
        save_demonstrations(connection, self._demonstrations)
        if self._references:
            connection.execute(_NEW_REFERENCES, {"rows": self._references})


def _brought(following: Sequence[Step], plan: RunPlan) -> dict[str, Demonstrations]:
    """Return the demonstrations that steps refer to and that aren't the run's."""
    run_digests = {shots.digest for shots in plan.shots.values()}
    prompts = [step.action.prompt for step in following if isinstance(step.action, Prompted)]
    shown = (prompt.demonstrations for prompt in prompts if prompt.demonstrated is not None)
    return {shots.digest: shots for shots in shown if shots.digest not in run_digests}


def _made(following: Sequence[Step], history: Sequence[Recorded]) -> dict[str, Paragraph]:
    """Return the paragraphs that steps refer to and that none of the question's searches found."""
    # By identity, as a replay hands the same objects through: most of what was found needs no digest here.
    retrieved = {
        id(hit.paragraph) for record in history if isinstance(record.outcome, Retrieved) for hit in record.outcome.hits
    }
    referred = (paragraph for step in following for paragraph in kind_of(step.action).paragraphs(step.action))
    return {paragraph.digest: paragraph for paragraph in referred if id(paragraph) not in retrieved}
