"""ROUGE-L of long answers in free form, which share few exact words with a published one (ELI5)."""

from collections.abc import Sequence

from cotrail.common.text_overlap import rouge_l
from cotrail.data.datasets.scoring import Scoring


def long_answer_score(scoring: Scoring, prediction: str, answers: Sequence[str]) -> float | None:
    """ROUGE-L with the nearest published answer, from 0 to 1; None where they aren't long, and where none is published.

    Search-in-the-Chain doesn't say which ROUGE-L it reports; this is rouge-score's. KILT's `eval_downstream.py` takes
    the best over the answers too, but computes it by the package `rouge`, which neither lower-cases nor removes
    punctuation, so its figures aren't comparable with these.
    """
    if not scoring.long_answers or not answers:
        return None
    return max(rouge_l(prediction, answer) for answer in answers)
