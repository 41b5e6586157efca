"""The figures that the official evaluation scripts print, each rounded at the point where its script rounds."""

from collections.abc import Iterable, Sequence

from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_scores import (
    NO_OVERLAP,
    Accuracy,
    AnswerScores,
    accuracy,
    answer_scores,
    is_unclear,
    rounded,
)


def official_figures(
    dataset: str, predictions: Sequence[str | None], answers: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Compute the figures of the dataset's script, under the names that it prints.

    hotpotqa: from 0 to 1, unrounded. 2wikimultihopqa: percentages, two decimals. musique, jsonl: from 0 to 1, three
    decimals. iirc, ircot: as `evaluate.py` in the released code of IRCoT prints them, three decimals. strategyqa,
    infotabs (accuracy from 0 to 1) and tempquestions (percentages): as the released code of Rethinking with Retrieval
    prints them, unrounded. fever: the label accuracy of its scorer (sheffieldnlp/fever-scorer), from 0 to 1. zsre,
    trex, eli5: em and f1 of KILT's `eval_downstream.py`, from 0 to 1; on its ROUGE-L see `long_answers` of the metrics.

    predictions: None for a missing one, which scores 0. answers: of each question all that count as correct.
    InputError where there are no questions, not as many answers as predictions, or a question without an answer.
    """
    if len(predictions) != len(answers) or not answers or not all(answers):
        raise InputError(
            f"{len(predictions)} predictions and {len(answers)} questions' answers can't be compared: "
            "each prediction needs the published answers of its question, one at least"
        )
    if dataset in ("strategyqa", "strategyqa-facts"):
        counts = _accuracy(predictions, answers)
        return {"accuracy": counts.share, "adjusted_accuracy": counts.adjusted}
    return _figures(dataset, [_scores(dataset, *pair) for pair in zip(predictions, answers, strict=True)])


def _figures(dataset: str, scores: Sequence[AnswerScores]) -> dict[str, float]:
    """The means of the scores, named and rounded as the dataset's script does."""
    count = len(scores)
    em = _total(each.em for each in scores) / count
    f1 = _total(each.f1 for each in scores) / count
    precision = _total(each.precision for each in scores) / count
    recall = _total(each.recall for each in scores) / count
    match dataset:
        case "hotpotqa":
            return {"em": em, "f1": f1, "prec": precision, "recall": recall}
        case "2wikimultihopqa":
            named = {"em": em, "f1": f1, "prec": precision, "recall": recall}
            return {name: round(value * 100, 2) for name, value in named.items()}
        case "zsre" | "trex" | "eli5":
            return {"em": em, "f1": f1}
        case "infotabs" | "fever":
            return {"accuracy": em}
        case "tempquestions":
            return {"exact_match": 100 * em, "f1": 100 * f1}
        case "iirc" | "ircot":
            named = {"f1": f1, "precision": precision, "recall": recall}
            return {"em": round(em, 3), **{name: rounded(value, 3) for name, value in named.items()}, "count": count}
    return {"answer_f1": round(f1, 3), "answer_em": round(em, 3)}


def _accuracy(predictions: Sequence[str | None], answers: Sequence[Sequence[str]]) -> Accuracy:
    pairs = zip(predictions, answers, strict=True)
    return accuracy(
        (_scores("strategyqa", said, right).em == 1, said is not None and is_unclear(said, right[0]))
        for said, right in pairs
    )


def _scores(dataset: str, prediction: str | None, answers: Sequence[str]) -> AnswerScores:
    scores = answer_scores(scoring_of(dataset), prediction or "", answers)
    return scores if scores and prediction is not None else NO_OVERLAP


def _total(values: Iterable[float]) -> float:
    """Plain left-to-right addition, as in the scripts; from Python 3.12 on, `sum` compensates rounding errors."""
    total = 0.0
    for value in values:
        total += value
    return total
