"""Prompts of a run's steps, rebuilt as its model saw them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Engine, select

from benchmarks.actions import prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.generation import Until
from cotrail.core.history import Next, Recorded
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.core.replay import advance
from cotrail.core.results import Generated
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.runs import RunPlan, Runs
from cotrail.models.records.steps import read_histories
from cotrail.models.schema.tables import questions
from cotrail.systems.registry import find_system


class RecordedPrompt(Struct, frozen=True, kw_only=True):
    """A packed prompt and the model's output; kind: of its step; question: the question's id."""

    question: str
    kind: str
    prompt: Prompt
    until: Until
    max_tokens: int
    written: Generated


def read_prompts(engine: Engine, run: str, asked: Sequence[Question]) -> list[RecordedPrompt]:
    """Read the prompts of a run, question by question, each question's in their order.

    Raises ValueError where a rebuilt prompt differs from what the model saw.
    """
    with engine.connect() as connection:
        plan = Runs(find_system).plan(connection, run)
        rows = connection.execute(select(questions.c.key, questions.c.id).where(questions.c.run_id == run))
        ids = {row.key: row.id for row in rows}
        histories = read_histories(connection, list(ids.values()), ParagraphCache())
    return [
        each for question in asked for each in _question_prompts(plan, question, histories[ids[question.id]].records)
    ]


def save_prompts(path: Path, asked: Iterable[RecordedPrompt]) -> None:
    """Write prompts to a JSON Lines file."""
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in asked))


def load_prompts(path: Path) -> list[RecordedPrompt]:
    """Read the prompts that `save_prompts` wrote."""
    return [msgspec.json.decode(line, type=RecordedPrompt) for line in path.read_bytes().splitlines()]


def _question_prompts(plan: RunPlan, question: Question, history: Sequence[Recorded]) -> Iterator[RecordedPrompt]:
    system = plan.open(question, find_system)
    for number, record in enumerate(history):
        following = advance(system, history[:number], plan.binding)
        if not isinstance(following, Next) or not isinstance(record.outcome, Generated):
            continue
        action, written = prompted(following.steps[0].action), record.outcome
        prompt = action.prompt.keep(written.demonstrations, written.paragraphs, written.first_demonstration)
        if prompt.digest != written.prompt_digest:
            raise ValueError(f"question {question.id}, step {number}: the prompt isn't the one that the model saw")
        yield RecordedPrompt(
            question=question.id,
            kind=kind_of(action).name,
            prompt=prompt,
            until=action.until,
            max_tokens=action.max_tokens,
            written=written,
        )
