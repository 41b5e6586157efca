"""Results of runs of Search-in-the-Chain, as its tables need them: a tree, a score and words for each question."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from statistics import fmean

from msgspec import Struct

from cotrail.core.actions.generate import REASON
from cotrail.core.prompts import Piece, Prompt, Written
from cotrail.data.datasets.musique import hops
from cotrail.data.datasets.registry import scoring_of
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.experiments.costs import ReadQuestion, ReadRun, RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.paper import GridCell
from cotrail.evaluation.metrics.answer_metrics import cover_em, long_answer_score
from cotrail.systems.searchain.tree import Mark, Tree


class WordCounts(Struct, frozen=True, kw_only=True):
    """Words of a question's calls of the language model.

    read: the first prompt, and what each further call added to it, without what the model itself had written.
    read_again: all of every call's prompt. written: by the model.
    """

    read: int
    read_again: int
    written: int


class Searched(ReadQuestion, frozen=True, kw_only=True):
    """A question of a run.

    score: of the final content, from 0 to 1, by the dataset's metric; stated: of the answer that it states; None where
        there is no answer (yet).
    hops: how many MuSiQue's question has.
    gold: digests of the found paragraphs whose title is a gold paragraph's; None where no gold ones are published.
    """

    score: float | None
    stated: float | None = None
    hops: int | None = None
    tree: Tree | None = None
    gold: frozenset[str] | None = None
    words: WordCounts | None = None

    @property
    def has_answer(self) -> bool:
        return self.score is not None


class SearChainRun(ReadRun[Searched], frozen=True, kw_only=True):
    """A run of Search-in-the-Chain, or of one of its ablations.

    dataset: as the experiment's file names it; corpus: None where nothing was retrieved.
    scores_overlap: whether the score is ROUGE-L, and not whether the answer is right.
    """

    variation: str
    corpus: str | None = None
    scores_overlap: bool = False

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees of all answers."""
        return tuple(each.tree for each in self.questions if each.tree)

    @property
    def score(self) -> float:
        """Mean score of the final contents; a question without an answer counts 0."""
        return fmean(each.score or 0.0 for each in self.questions)

    @property
    def stated(self) -> float:
        """Mean score of the stated answers; a question without an answer counts 0."""
        return fmean(each.stated or 0.0 for each in self.questions)


def read_run(trial: GridCell, run: RecordedRun) -> SearChainRun:
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
        questions=tuple(_searched(scoring, each, words.get(each.key)) for each in run.questions if each.asked),
        corpus=run.corpus,
        scores_overlap=scoring.long_answers,
        cost=run.cost,
        unasked=run.unasked,
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


# Statistics of trees of reasoning, as tables 2 to 6 of Search-in-the-Chain define them (section 4.3).


class Sources(Struct, frozen=True, kw_only=True):
    """Numbers of nodes of paths by the source of their answers."""

    model: int
    corrected: int
    completed: int

    @property
    def nodes(self) -> int:
        """All of them; a node for which nothing was found has no source."""
        return self.model + self.corrected + self.completed


class Effect(Struct, frozen=True, kw_only=True):
    """What retrieval changes, over the questions that have an answer both with and without it.

    questions: S; without: the mean score on it without retrieval.
    helped: S_IR, the questions of which retrieval corrected or completed a node; helped_without, helped_with: the mean
        scores on it; None where it is empty.
    right: the questions that are right without retrieval; misled: those of them that are wrong with it.
    """

    questions: int
    without: float
    helped: int
    helped_without: float | None
    helped_with: float | None
    right: int
    misled: int


class Efficiency(Struct, frozen=True, kw_only=True):
    """Means over questions: words as in `WordCounts`, and rounds of interaction with retrieval."""

    questions: int
    read: float
    read_again: float
    written: float
    rounds: float


class Citations(Struct, frozen=True, kw_only=True):
    """Counts of the marks that the model wrote in final contents.

    contents: final contents that aren't empty; marked: those with a mark.
    references: how often a part of a content names a node, where gold paragraphs are published; gold: how often the
        node's document has the title of one.
    path: nodes of the paths; named: those that a mark names.
    """

    contents: int
    marked: int
    references: int
    gold: int
    path: int
    named: int


def sources(trees: Iterable[Tree]) -> Sources:
    """Count the nodes of the paths by their source (table 2): a query that was looked at again counts once."""
    counts = Counter(tree.nodes[number].source for tree in trees for number in tree.path)
    return Sources(model=counts["model"], corrected=counts["corrected"], completed=counts["completed"])


def is_helped(tree: Tree) -> bool:
    """Return whether retrieval corrected or completed any of its nodes."""
    return any(node.source in ("corrected", "completed") for node in tree.nodes)


def effect(retrieving: Iterable[Searched], alone: Iterable[Searched]) -> Effect | None:
    """Compare the questions of a run with the same ones without retrieval (tables 3 and 4); None where none pair."""
    others = {each.key: each.score for each in alone}
    pairs = [
        (each.tree, with_, without)
        for each in retrieving
        if (with_ := each.score) is not None and (without := others.get(each.key)) is not None
    ]
    if not pairs:
        return None
    helped = [(with_, without) for tree, with_, without in pairs if tree and is_helped(tree)]
    right = [with_ for _, with_, without in pairs if without == 1]
    return Effect(
        questions=len(pairs),
        without=fmean(without for _, _, without in pairs),
        helped=len(helped),
        helped_without=fmean(without for _, without in helped) if helped else None,
        helped_with=fmean(with_ for with_, _ in helped) if helped else None,
        right=len(right),
        misled=sum(with_ != 1 for with_ in right),
    )


def nodes_by_hops(questions: Iterable[Searched]) -> Mapping[int, float]:
    """The mean number of nodes by the questions' hops (table 5)."""
    numbers = defaultdict(list)
    for each in questions:
        if each.tree and each.hops:
            numbers[each.hops].append(len(each.tree.nodes))
    return {hops: fmean(of_hops) for hops, of_hops in sorted(numbers.items())}


def efficiency(questions: Iterable[Searched]) -> Efficiency | None:
    """The mean words and interactions of an answered question (table 6); None where there is none."""
    pairs = [(each.words, each.tree) for each in questions if each.words and each.tree]
    if not pairs:
        return None
    return Efficiency(
        questions=len(pairs),
        read=fmean(words.read for words, _ in pairs),
        read_again=fmean(words.read_again for words, _ in pairs),
        written=fmean(words.written for words, _ in pairs),
        rounds=fmean(tree.rounds for _, tree in pairs),
    )


def citations(questions: Iterable[Searched]) -> Citations:
    """Count what the marks of the final contents name."""
    pairs = [(each.tree, each.gold) for each in questions if each.tree]
    checked = [(node in gold) for tree, gold in pairs if gold is not None for node in _documents(tree)]
    return Citations(
        contents=sum(bool(tree.final) for tree, _ in pairs),
        marked=sum(bool(_named(tree)) for tree, _ in pairs),
        references=len(checked),
        gold=sum(checked),
        path=sum(len(tree.path) for tree, _ in pairs),
        named=sum(len(_named(tree).intersection(tree.path)) for tree, _ in pairs),
    )


def _written(tree: Tree) -> tuple[Mark, ...]:
    """The marks, unless they were found by the nodes' answers in a content without any."""
    return tree.marks if tree.marks_are_written else ()


def _named(tree: Tree) -> frozenset[int]:
    return frozenset(node for mark in _written(tree) for node in mark.nodes)


def _documents(tree: Tree) -> Iterator[str | None]:
    """The document of each node that a mark names, once for each part of the content that names it."""
    documents = {node.number: node.paragraph for node in tree.nodes}
    yield from (documents[node] for mark in _written(tree) for node in mark.nodes)
