"""Demonstrations that a model wrote itself, of questions unlike one another: Auto-CoT (Zhang et al., 2022)."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.core.answer_extraction import STEP_BY_STEP
from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.data.demonstrations.clusters import clusters
from cotrail.errors import DemonstrationError


class SolvedQuestion(Struct, frozen=True, kw_only=True):
    """A question with the steps of the chain that a model wrote, and the answer that it named."""

    id: str
    question: str
    steps: tuple[str, ...]
    answer: str


class Simple(Struct, frozen=True, kw_only=True):
    """What makes a chain simple enough to be shown: the most words of its question, and the most of its steps."""

    question_words: int = 60
    steps: int = 5


def self_written(
    solved: Sequence[SolvedQuestion], similarities: Sequence[Sequence[float]], number: int, seed: int, simple: Simple
) -> Demonstrations:
    """A demonstration of each cluster of the questions: of those that are acceptable, the one nearest to the centre.

    A cluster without any gives none. A chain is acceptable if it is simple, ends in a full stop and has an answer.

    similarities: of each question to each; number: of clusters; seed: decides where these begin.
    Raises DemonstrationError where there are fewer questions than clusters, or nothing is acceptable.
    """
    if len(solved) < number:
        raise DemonstrationError(
            f"{number} clusters need as many answered questions, and there are {len(solved)}; take fewer clusters"
        )
    members = clusters(similarities, number, seed)
    chosen = (next((solved[place] for place in each if acceptable(solved[place], simple)), None) for each in members)
    items = tuple(_demonstration(each) for each in chosen if each is not None)
    if not items:
        raise DemonstrationError(
            f"no chain has at most {simple.steps} steps, a question of at most {simple.question_words} words, a full "
            "stop at its end and an answer; allow more of either, or have a run over more questions"
        )
    return Demonstrations(items=items)


def acceptable(solved: SolvedQuestion, simple: Simple) -> bool:
    """Return whether a chain may be shown (section 4.2 and the authors' code)."""
    is_simple = len(solved.question.split()) <= simple.question_words and 0 < len(solved.steps) <= simple.steps
    return is_simple and solved.steps[-1].endswith(".") and bool(_line(solved.answer))


def _demonstration(solved: SolvedQuestion) -> Demonstration:
    answer = _line(solved.answer).removesuffix(".")
    chain = _line(" ".join(solved.steps))
    return Demonstration(
        id=solved.id,
        paragraphs=(),
        question=_line(solved.question),
        answer=f"{STEP_BY_STEP} {chain} The answer is {answer}.",
    )


def _line(text: str) -> str:
    return " ".join(text.split())
