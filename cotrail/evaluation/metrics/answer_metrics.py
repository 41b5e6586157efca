"""The metrics of a question's answer, and those of its paragraphs and their ranking."""

from collections.abc import Callable, Mapping, Sequence
from operator import contains
from pathlib import Path

from cotrail.common.answer_normalization import normalized, rouge_l
from cotrail.common.toml_files import read_toml
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics.answer_scores import published_spans, tuning_f1
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
    return _covered(lambda said, span: set(span.split()) <= set(said.split()), prediction, answers)


def _covered(covers: Covers, prediction: str, answers: Sequence[str]) -> float | None:
    if not answers:
        return None
    said = normalized(prediction)
    spans_of = (map(normalized, published_spans(answer)) for answer in answers)
    return float(any(all(covers(said, span) if span else not said for span in spans) for spans in spans_of))


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
    right = (said == answer or (_FALSE_PREMISE in said and _FALSE_PREMISE in answer) for answer in map(_plain, answers))
    return 1.0 if any(right) else -1.0


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


def _of_support(part: Callable[[SupportScores], float | None]) -> Callable[[ScoredQuestion], float | None]:
    return lambda question: None if question.support is None else part(question.support)


SCORES: Mapping[str, Callable[[ScoredQuestion], float | None]] = {
    "answer_em": lambda question: None if question.agreement is None else question.agreement.em,
    "answer_f1": lambda question: None if question.agreement is None else question.agreement.f1,
    "tuning_f1": lambda question: tuning_f1(question.short, question.compared),
    "cover_em": lambda question: cover_em(question.written, question.compared),
    "cover_em_words": lambda question: cover_em_words(question.written, question.compared),
    "crag": lambda question: crag_score(question.short, question.compared),
    "rouge_l": lambda question: long_answer_score(question.scoring, question.written, question.compared),
    "paragraph_recall": _of_support(lambda support: support.recall),
    "paragraph_precision": _of_support(lambda support: support.precision),
    "paragraph_f1": _of_support(lambda support: support.f1),
    "paragraph_em": _of_support(lambda support: support.em),
    "title_recall": _of_support(lambda support: support.title_recall),
    "answer_support_recall": lambda question: answer_support_recall(question.collected, question.answers),
    "paragraphs_collected": lambda question: len(question.collected),
    # Of the order in which paragraphs were found: BEIR reports NDCG at 10 and recall at 100, BrowseComp-Plus NDCG at 10
    # and recall at 5 and 100.
    "ndcg_at_10": lambda question: ndcg(question.judged, 10),
    "recall_at_5": lambda question: recall_at(question.judged, 5),
    "recall_at_10": lambda question: recall_at(question.judged, 10),
    "recall_at_100": lambda question: recall_at(question.judged, 100),
    "mrr": lambda question: reciprocal_rank(question.judged),
}
"""By the names of `metrics.toml`: the value of a question, None where its dataset publishes nothing to compare with."""


_DESCRIBED = read_toml(Path(__file__).with_name("metrics.toml"))

METRICS = {name: Metric(name=name, score=SCORES[name], **said) for name, said in _DESCRIBED.items()}
"""The metrics by name; extensions add to them."""

BUILT_IN = frozenset(METRICS)
"""The names of those that every process knows."""


def main_metrics() -> tuple[Metric, ...]:
    """The main metrics, by rank."""
    ranked = ((metric.rank, metric) for metric in METRICS.values() if metric.rank is not None)
    return tuple(metric for _, metric in sorted(ranked, key=lambda pair: pair[0]))
