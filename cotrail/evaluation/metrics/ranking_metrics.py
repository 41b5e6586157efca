"""The metrics of the order in which a question's paragraphs were found, against its judged documents."""

from functools import partial

from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.supporting_paragraphs import ndcg, recall_at, reciprocal_rank

NDCG_CUT = 10
"""The paragraphs that NDCG looks at, as in BEIR and BrowseComp-Plus."""

RECALL_CUTS = (5, 10, 100)
"""Those that recall looks at: BrowseComp-Plus reports it at 5 and 100, BEIR at 100."""


def _recall(cut: int, question: ScoredQuestion) -> float | None:
    return recall_at(question.judged, cut)


METRICS = (
    Metric(
        name=f"ndcg_at_{NDCG_CUT}",
        title=f"NDCG@{NDCG_CUT}",
        meaning=f"mean gain of the first {NDCG_CUT} paragraphs found, over that of the best order of the gold ones",
        of="paragraphs",
        score=lambda question: ndcg(question.judged, NDCG_CUT),
    ),
    *(
        Metric(
            name=f"recall_at_{cut}",
            title=f"Recall@{cut}",
            meaning=f"mean share of a question's gold paragraphs among the first {cut} found",
            of="paragraphs",
            score=partial(_recall, cut),
        )
        for cut in RECALL_CUTS
    ),
    Metric(
        name="mrr",
        title="MRR",
        meaning="mean of 1 over the rank of a question's first gold paragraph",
        of="paragraphs",
        score=lambda question: reciprocal_rank(question.judged),
    ),
)
