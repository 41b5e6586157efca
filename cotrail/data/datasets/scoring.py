"""What a dataset's answers and paragraphs are scored by."""

from typing import Literal

from msgspec import Struct

RuleName = Literal["hotpotqa", "squad", "drop", "kilt", "label"]
"""The rules by which answers are scored: exact match and F1 of HotpotQA's script, of SQuAD's, of DROP's for several
spans, and of KILT's; or whether a label is the right one. They are in `cotrail.evaluation.metrics.answer_scores`."""


class Scoring(Struct, frozen=True):
    """How a dataset's questions are scored.

    rule: for its answers; long_answers: whether they are scored by ROUGE-L too.
    any_script: whether texts may be in other scripts than Latin, so that paragraphs aren't compared by ASCII alone.
    """

    rule: RuleName
    long_answers: bool = False
    any_script: bool = False
