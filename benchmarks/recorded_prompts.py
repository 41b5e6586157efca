"""The prompts of a run's steps, as its model saw them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.actions.registry import kind_of
from cotrail.core.generation import Until
from cotrail.core.history import Next, Recorded
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.core.replay import advance
from cotrail.core.results import Generated
from cotrail.systems.registry import find_system
from models.records.histories import read_histories
from models.records.paragraphs import ParagraphCache
from models.records.runs import RunPlan, Runs
from models.schema.tables import questions


class Asked(Struct, frozen=True, kw_only=True):
    """A prompt, packed, and what the model wrote; `kind` is that of its step, `question` the question's id."""

    question: str
    kind: str
    prompt: Prompt
    until: Until
    max_tokens: int
    written: Generated


def read_asked(engine: Engine, run: str, asked: Sequence[Question]) -> list[Asked]:
    """What a run asked of its model, question by question, a question's prompts in their order.

    Raises ValueError where a prompt comes out otherwise than the model saw it.
    """
    with engine.connect() as connection:
        plan = Runs(find_system).plan(connection, run)
        rows = connection.execute(select(questions.c.key, questions.c.id).where(questions.c.run_id == run))
        ids = {row.key: row.id for row in rows}
        histories = read_histories(connection, list(ids.values()), ParagraphCache())
    return [each for question in asked for each in _asked(plan, question, histories[ids[question.id]].records)]


def save_asked(path: Path, asked: Iterable[Asked]) -> None:
    """Writes them into a file, one JSON object a line."""
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in asked))


def load_asked(path: Path) -> list[Asked]:
    """What `save_asked` wrote."""
    return [msgspec.json.decode(line, type=Asked) for line in path.read_bytes().splitlines()]


def _asked(plan: RunPlan, question: Question, history: Sequence[Recorded]) -> Iterator[Asked]:
    system = plan.open(question, find_system)
    for number, record in enumerate(history):
        following = advance(system, history[:number], plan.binding)
        if not isinstance(following, Next) or not isinstance(record.outcome, Generated):
            continue
        action, written = following.steps[0].action, record.outcome
        assert isinstance(action, Reason | Read)
        prompt = action.prompt.keep(written.demonstrations, written.paragraphs, written.first_demonstration)
        if prompt.digest != written.prompt_digest:
            raise ValueError(f"question {question.id}, step {number}: the prompt isn't the one that the model saw")
        yield Asked(
            question=question.id,
            kind=kind_of(action).name,
            prompt=prompt,
            until=action.until,
            max_tokens=action.max_tokens,
            written=written,
        )
