"""The run of the bundled sample that `cotrail demo` shows."""

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.evaluation.experiments.ircot.published import published
from cotrail.models.queries.traces import read_questions
from cotrail.services.runs.named_runs import find_run
from cotrail.services.views.scored_questions import scores_of


class SampleAnswer(Struct, frozen=True, kw_only=True):
    """A question's answer, or its status where it has none, beside the gold one."""

    answer: str
    gold: str
    right: bool


class PublishedModel(Struct, frozen=True, kw_only=True):
    """A model of IRCoT's paper: its size in billions of parameters, and its answer F1 on HotpotQA."""

    name: str
    parameters: float
    answer_f1: float


def read_answers(connection: Connection, run: str) -> list[SampleAnswer]:
    """The answers of the run's questions, in their order."""
    record = find_run(connection, run)
    return [
        SampleAnswer(
            answer=question.answer or question.status,
            gold=question.answers[0],
            right=scores_of(record, question)["answer_em"] == 1,
        )
        for question in read_questions(connection, record.id)
    ]


def published_models() -> list[PublishedModel]:
    """The models of IRCoT's paper (table 4), with the reader of which it reports the main results."""
    paper = published()
    return [
        PublishedModel(name=row.model, parameters=paper.parameters[row.model], answer_f1=row.scores["hotpotqa"][0])
        for row in paper.answer_f1
        if row.where == "table 4" and row.system == "ircot" and row.reader == paper.readers[row.model]
    ]
