"""The metrics of a question's answer, and those of its paragraphs and their ranking."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from operator import contains

from cotrail.common.answer_normalization import normalized, rouge_l
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics.answer_scores import tuning_f1
from cotrail.evaluation.metrics.drop import published_spans
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.supporting_paragraphs import (
    SupportScores,
    answer_support_recall,
    ndcg,
    recall_at,
    reciprocal_rank,
)

# Cover exact match (cover-EM): whether an answer contains a published one, both normalized.
#
# Two definitions are in use, and they differ in both directions. By substring, "no" is in "I know" and "red fox" isn't
# in "the fox is red"; by words, it is the other way round.

Covers = Callable[[str, str], bool]
"""Says whether a prediction covers a published span, both normalized; the span has a word at least."""


def cover_em(prediction: str, answers: Sequence[str]) -> float | None:
    """1 if a published answer is a substring of the prediction, else 0; None where none is published.

    The metric of Search-in-the-Chain (section 4.1) and of Self-Ask, and FlashRAG's `acc`. Here an answer of several
    spans (IIRC) must be covered in all of them, and one without words is covered by a prediction without words alone.
    """
    return _covered(contains, prediction, answers)


def cover_em_words(prediction: str, answers: Sequence[str]) -> float | None:
    """1 if the prediction has all words of a published answer, in any order, else 0; None where none is published.

    The accuracy of UltraRAG and of R1-Searcher (its ACC_R). Several spans, and none, as in `cover_em`.
    """
    return _covered(_has_words, prediction, answers)


def _covered(covers: Covers, prediction: str, answers: Sequence[str]) -> float | None:
    if not answers:
        return None
    said = normalized(prediction)
    spans_of = (map(normalized, published_spans(answer)) for answer in answers)
    return float(any(all(covers(said, span) if span else not said for span in spans) for spans in spans_of))


def _has_words(prediction: str, span: str) -> bool:
    return set(span.split()) <= set(prediction.split())


# CRAG's three-valued score, as far as it needs no judge (facebookresearch/CRAG, `local_evaluation.py`).
#
# CRAG rewards saying that one doesn't know over being wrong. Its script asks a language model whether an answer that
# isn't equal to a published one agrees with it; without that judge such an answer counts as wrong, so this is the
# lowest that the score can be. The paper's perfect and acceptable answers (1 and 0.5) are judged by people, and not
# by the script.

_UNKNOWN = "i don't know"
"""What an answer that is missing says somewhere."""

_FALSE_PREMISE = "invalid"
"""What both answers say of a question whose premise is false, in whatever words."""


def crag_score(prediction: str, answers: Sequence[str]) -> float | None:
    """1 for a right answer, 0 for a missing one, -1 for any other; None where none is published.

    Missing is an empty answer, and one that says "I don't know", with a typographic apostrophe too. Right is what
    equals a published answer apart from case and outer white space, or what calls a question invalid whose answer does.
    """
    if not answers:
        return None
    said = _plain(prediction)
    if not said or _UNKNOWN in said:
        return 0.0
    return 1.0 if any(_agree(said, _plain(answer)) for answer in answers) else -1.0


def _agree(said: str, published: str) -> bool:
    return said == published or (_FALSE_PREMISE in said and _FALSE_PREMISE in published)


def _plain(text: str) -> str:
    return text.strip().lower().replace("\u2019", "'")


# ROUGE-L of long answers in free form, which share few exact words with a published one (ELI5).


def long_answer_score(scoring: Scoring, prediction: str, answers: Sequence[str]) -> float | None:
    """ROUGE-L with the nearest published answer, from 0 to 1; None where they aren't long, and where none is published.

    Search-in-the-Chain doesn't say which ROUGE-L it reports; this is rouge-score's. KILT's `eval_downstream.py` takes
    the best over the answers too, but computes it by the package `rouge`, which neither lower-cases nor removes
    punctuation, so its figures aren't comparable with these.
    """
    if not scoring.long_answers or not answers:
        return None
    return max(rouge_l(prediction, answer) for answer in answers)


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


# The metrics of the paragraphs that were collected for a question.


def _agreement(part: Callable[[SupportScores], float | None]) -> Callable[[ScoredQuestion], float | None]:
    return lambda question: None if question.support is None else part(question.support)


PARAGRAPH_METRICS = (
    Metric(
        name="paragraph_recall",
        title="Paragraph recall",
        meaning="mean share of a question's gold paragraphs that were collected",
        of="paragraphs",
        score=_agreement(lambda support: support.recall),
        rank=4,
    ),
    Metric(
        name="paragraph_precision",
        title="Paragraph precision",
        meaning="mean share of a question's collected paragraphs that are gold",
        of="paragraphs",
        score=_agreement(lambda support: support.precision),
    ),
    Metric(
        name="paragraph_f1",
        title="Paragraph F1",
        meaning="mean harmonic mean of those two",
        of="paragraphs",
        score=_agreement(lambda support: support.f1),
    ),
    Metric(
        name="paragraph_em",
        title="Paragraph EM",
        meaning="share of the questions that collected the gold paragraphs and no others",
        of="paragraphs",
        score=_agreement(lambda support: support.em),
        zero_or_one=True,
    ),
    Metric(
        name="title_recall",
        title="Title recall",
        meaning="mean share of a question's gold titles that were collected",
        of="paragraphs",
        score=_agreement(lambda support: support.title_recall),
    ),
    Metric(
        name="answer_support_recall",
        title="Answer-support recall",
        meaning="mean share of an answer's spans that occur in a collected paragraph",
        of="paragraphs",
        score=lambda question: answer_support_recall(question.collected, question.answers),
    ),
    Metric(
        name="paragraphs_collected",
        title="Paragraphs collected",
        meaning="mean number of paragraphs collected for a question",
        of="paragraphs",
        score=lambda question: len(question.collected),
        highest=inf,
        rank=6,
    ),
)


# The metrics of the order in which a question's paragraphs were found, against its judged documents.

NDCG_CUT = 10
"""The paragraphs that NDCG looks at, as in BEIR and BrowseComp-Plus."""

RECALL_CUTS = (5, 10, 100)
"""Those that recall looks at: BrowseComp-Plus reports it at 5 and 100, BEIR at 100."""


def _recall(cut: int, question: ScoredQuestion) -> float | None:
    return recall_at(question.judged, cut)


RANKING_METRICS = (
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
