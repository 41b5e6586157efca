"""Results of runs of Search-in-the-Chain, as its tables need them: a tree, a score and words for each question."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from statistics import fmean

from msgspec import Struct

from cotrail.core.actions.generate import REASON
from cotrail.core.prompts import Piece, Prompt, Written
from cotrail.data.datasets.musique import hops
from cotrail.data.datasets.registry import scoring_of
from cotrail.data.datasets.scoring import Scoring
from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.experiments.recorded_runs import RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.searchain.experiment import SearChainTrial, Variation
from cotrail.evaluation.metrics.cover_em import cover_em
from cotrail.evaluation.metrics.long_answers import long_answer_score
from cotrail.systems.searchain.tree import Tree


class WordCounts(Struct, frozen=True, kw_only=True):
    """Words of a question's calls of the language model.

    read: the first prompt, and what each further call added to it, without what the model itself had written.
    read_again: all of every call's prompt. written: by the model.
    """

    read: int
    read_again: int
    written: int


class Searched(Struct, frozen=True, kw_only=True):
    """A question of a run.

    score: of the final content, from 0 to 1, by the dataset's metric; stated: of the answer that it states; None where
        there is no answer (yet).
    hops: how many MuSiQue's question has.
    gold: digests of the found paragraphs whose title is a gold paragraph's; None where no gold ones are published.
    """

    key: str
    score: float | None
    stated: float | None = None
    hops: int | None = None
    tree: Tree | None = None
    gold: frozenset[str] | None = None
    words: WordCounts | None = None


class SearChainRun(Struct, frozen=True, kw_only=True):
    """A run of Search-in-the-Chain, or of one of its ablations.

    id: its name in tables; dataset: as the experiment's file names it; corpus: None where nothing was retrieved.
    scores_overlap: whether the score is ROUGE-L, and not whether the answer is right.
    """

    id: str
    dataset: str
    model: str
    variation: Variation
    questions: tuple[Searched, ...]
    corpus: str | None = None
    scores_overlap: bool = False
    cost: Cost | None = None

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees of all answers."""
        return tuple(each.tree for each in self.questions if each.tree)

    @property
    def answered(self) -> int:
        """Number of questions that have an answer, including empty ones."""
        return sum(each.score is not None for each in self.questions)

    @property
    def is_answered(self) -> bool:
        """Return whether every question has an answer."""
        return self.answered == len(self.questions)

    @property
    def score(self) -> float:
        """Mean score of the final contents; a question without an answer counts 0."""
        return fmean(each.score or 0.0 for each in self.questions)

    @property
    def stated(self) -> float:
        """Mean score of the stated answers; a question without an answer counts 0."""
        return fmean(each.stated or 0.0 for each in self.questions)


def read_run(trial: SearChainTrial, run: RecordedRun) -> SearChainRun:
    """What the tables need of a recorded run."""
    scoring = scoring_of(run.dataset)
    words = {
        key: words_of([call.prompt for call in calls], [call.written for call in calls])
        for key, calls in run.calls(REASON.name)
    }
    return SearChainRun(
        id=trial.name,
        dataset=trial.dataset,
        model=trial.model,
        variation=trial.variation,
        questions=tuple(_searched(scoring, each, words.get(each.key)) for each in run.questions),
        corpus=run.corpus,
        scores_overlap=scoring.long_answers,
        cost=run.cost,
    )


def words_of(prompts: Sequence[Prompt], texts: Sequence[str]) -> WordCounts:
    """Count the words of a question's prompts, in the order of the calls, and of what the model wrote."""
    pieces = [tuple(prompt.pieces) for prompt in prompts]
    new = [piece for before, now in pairwise([(), *pieces]) for piece in _added(before, now)]
    return WordCounts(
        read=sum(_words(piece.text) for piece in new if not isinstance(piece, Written)),
        read_again=sum(_words(piece.text) for prompt in pieces for piece in prompt),
        written=sum(map(_words, texts)),
    )


def _searched(scoring: Scoring, question: RecordedQuestion, words: WordCounts | None) -> Searched:
    tree = question.details if isinstance(question.details, Tree) else None
    titles = {each.title for each in question.gold}
    digests = frozenset(each.digest for each in question.paragraphs if each.title in titles)
    return Searched(
        key=question.key,
        score=_score(scoring, question.answer or "", question.answers) if tree else None,
        stated=_score(scoring, tree.stated, question.answers) if tree else None,
        hops=hops(question.kinds),
        tree=tree,
        gold=digests if titles else None,
        words=words,
    )


def _score(scoring: Scoring, text: str, answers: Sequence[str]) -> float | None:
    """ROUGE-L where the dataset's answers are long, cover-EM otherwise."""
    return long_answer_score(scoring, text, answers) if scoring.long_answers else cover_em(text, answers)


def _added(before: Sequence[Piece], now: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces behind those with which both prompts begin."""
    shared = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(before, now, strict=False)))
    yield from now[shared:]


def _words(text: str) -> int:
    return len(text.split())
