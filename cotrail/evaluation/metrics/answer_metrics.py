"""The metrics of a question's answer."""

from cotrail.evaluation.metrics.answer_scores import tuning_f1
from cotrail.evaluation.metrics.cover_em import cover_em, cover_em_words
from cotrail.evaluation.metrics.crag import crag_score
from cotrail.evaluation.metrics.long_answers import long_answer_score
from cotrail.evaluation.metrics.metric import Metric

METRICS = (
    Metric(
        name="answer_em",
        title="Answer EM",
        meaning="share of the answers that equal a published one, both normalized",
        of="answer",
        score=lambda question: None if question.agreement is None else question.agreement.em,
        rank=2,
        zero_or_one=True,
    ),
    Metric(
        name="answer_f1",
        title="Answer F1",
        meaning="mean word overlap of the answer with the nearest published one",
        of="answer",
        score=lambda question: None if question.agreement is None else question.agreement.f1,
        rank=3,
    ),
    Metric(
        name="tuning_f1",
        title="Answer F1 (DROP)",
        meaning="the same by DROP's rules, as the released code of IRCoT tunes",
        of="answer",
        score=lambda question: tuning_f1(question.short, question.compared),
    ),
    Metric(
        name="cover_em",
        title="Cover EM",
        meaning="share of the answers that contain a published one, even inside a word",
        of="answer",
        score=lambda question: cover_em(question.written, question.compared),
        rank=5,
        zero_or_one=True,
    ),
    Metric(
        name="cover_em_words",
        title="Cover EM (words)",
        meaning="share of the answers that have all words of a published one, in any order",
        of="answer",
        score=lambda question: cover_em_words(question.written, question.compared),
        zero_or_one=True,
    ),
    Metric(
        name="crag",
        title="CRAG",
        meaning='mean of 1 for a right answer, 0 for none or "I don\'t know", -1 for others, without a judge',
        of="answer",
        score=lambda question: crag_score(question.short, question.compared),
        lowest=-1.0,
    ),
    Metric(
        name="rouge_l",
        title="ROUGE-L",
        meaning="mean ROUGE-L of the answer with the nearest published one (ELI5)",
        of="answer",
        score=lambda question: long_answer_score(question.scoring, question.written, question.compared),
        rank=1,
    ),
)
