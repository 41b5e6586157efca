"""A judge's verdict on an answer, or on two of them, with what it rests on."""

from msgspec import Struct


class ClaimVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on one claim of an answer; cited: the numbers of the paragraphs that it rests on, from 1."""

    claim: str
    verdict: str
    cited: tuple[int, ...] = ()


class Judgement(Struct, frozen=True, kw_only=True):
    """What a judge said; the details of its run's answers.

    rubric: its name. verdict: one of the rubric's; score: the verdict's by the rubric. Of claims, verdict and score are
        those on all of them together: see `cotrail.systems.judge.system`.
    confidence: the judge's own in its verdict, 0 to 1; None where the rubric doesn't ask for it.
    reasoning: why, in the judge's words; thoughts before its text are in its steps.
    extracted: the final answer that it read in the response, where the rubric asks for it.
    claims: of a rubric that goes claim by claim.
    consistent: of a preference, whether both orders led to it; None for other rubrics.
    """

    rubric: str
    verdict: str
    score: float
    confidence: float | None = None
    reasoning: str = ""
    extracted: str = ""
    claims: tuple[ClaimVerdict, ...] = ()
    consistent: bool | None = None
