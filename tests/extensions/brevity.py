"""A metric: whether an answer is a single word."""

from cotrail.evaluation.metrics.metric import Metric

BREVITY = Metric(
    name="brevity",
    title="Brevity",
    meaning="share of the answers that are a single word",
    of="answer",
    score=lambda question: float(len(question.written.split()) == 1) if question.answers else None,
    rank=0,
)
