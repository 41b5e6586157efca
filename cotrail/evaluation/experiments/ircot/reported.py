"""IRCoT's answer F1 (tables 4 and 6) as a source of figures; the numbers are those of its own protocol's tables."""

from functools import cache

from cotrail.evaluation.experiments.ircot.cells import READERS, SYSTEMS
from cotrail.evaluation.experiments.ircot.published import AnswerF1, published
from cotrail.evaluation.experiments.sources import Method, PublishedRow, PublishedTable, Source


@cache
def ircot() -> Source:
    """The paper."""
    where = dict.fromkeys(row.where for row in published().answer_f1)
    return Source(
        name="ircot",
        title="IRCoT",
        cited="IRCoT: Trivedi et al., 2023 (aclanthology.org/2023.acl-long.557)",
        tables=tuple(map(_table, where)),
        notes=("Published F1 is the mean of three demonstration sets. K was chosen on 100 other questions.",),
    )


def _table(where: str) -> PublishedTable:
    return PublishedTable(
        name=where.replace(" ", "-"),
        heading="Answer F1",
        where=where,
        metric="answer_f1",
        datasets=tuple(published().datasets),
        rows=tuple(_row(row) for row in published().answer_f1 if row.where == where),
    )


def _row(row: AnswerF1) -> PublishedRow:
    searched = {"hotpotqa": "its abstracts of Wikipedia (BM25)", "others": "the dataset's paragraphs (BM25)"}
    return PublishedRow(
        label=f"{SYSTEMS[row.system]}, {READERS[row.reader]}",
        where=row.where,
        methods=(Method(system=row.system, settings={"reading": {"reader": row.reader}}),),
        backbone=row.model,
        corpus="" if row.system == "no-retrieval" else searched,
        questions="500",
        scores={dataset: mean for dataset, (mean, _) in row.scores.items()},
    )
