"""Files of sampled chains with their scores: the input of faithful inference without a model.

The file is JSON Lines, a question a line: `{"id", "question", "answers", "task", "chains"}`. A chain is
`{"text", "prediction", "sentences"}`, and each of its sentences, the supporting facts whose scores are added up, is
`{"text", "similarity", "entailment", "contradiction"}` or, by the paper's letters, `{"text", "M", "E", "C"}`. Optional
fields have a default in the classes that begin with an underscore; unknown fields are refused, as misspelt ones.
"""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.common.json_files import decode, lines
from cotrail.errors import DatasetError
from cotrail.faithfulness.rules import ScoredChain, ScoredFact, prediction
from cotrail.faithfulness.tasks import VERDICTS, ChainRules, Task, same
from cotrail.faithfulness.weighing import NO_EVIDENCE, Scores

ROUNDING = 1e-6
"""How far a score may lie outside its range: models compute with 32 bits."""


class RecordedQuestion(Struct, frozen=True, kw_only=True):
    """A question with its chains; `answers` are all that count as right, empty if they aren't known."""

    id: str
    text: str
    answers: tuple[str, ...]
    task: Task
    chains: tuple[ScoredChain, ...]


_Similarity = Annotated[float, Meta(ge=-1 - ROUNDING, le=1 + ROUNDING)] | None
_Probability = Annotated[float, Meta(ge=-ROUNDING, le=1 + ROUNDING)] | None


class _Sentence(Struct, frozen=True, forbid_unknown_fields=True):
    """A supporting fact; it has none of the three scores where no evidence was found."""

    text: str = ""
    similarity: _Similarity = None
    entailment: _Probability = None
    contradiction: _Probability = None
    M: _Similarity = None
    E: _Probability = None
    C: _Probability = None

    @property
    def named(self) -> tuple[float | None, ...]:
        """The scores by their names."""
        return self.similarity, self.entailment, self.contradiction

    @property
    def lettered(self) -> tuple[float | None, ...]:
        """The scores by the paper's letters."""
        return self.M, self.E, self.C


class _Chain(Struct, frozen=True, forbid_unknown_fields=True):
    """A chain; its prediction is read from the text unless it is given."""

    text: str | None = None
    prediction: str | None = None
    sentences: tuple[_Sentence, ...] = ()


class _QuestionLine(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    chains: tuple[_Chain, ...]
    question: str = ""
    answers: tuple[str, ...] = ()
    task: Task | None = None


def read_recorded(path: Path, task: Task, rules: ChainRules = "paper") -> tuple[RecordedQuestion, ...]:
    """Read the questions of a file; DatasetError names the file, the line, and the unusable place in the line.

    task: of the questions whose lines name none; rules: by which predictions are read from chains.
    """
    questions: dict[str, RecordedQuestion] = {}
    for place, raw in lines(path, DatasetError):
        question = _question(decode(raw, _QuestionLine, place, DatasetError), task, rules, place)
        if question.id in questions:
            raise DatasetError(f"{place}: a question before has the id {question.id!r} too; give each its own")
        questions[question.id] = question
    if not questions:
        raise DatasetError(f"{path} holds no questions; check that it is the right file")
    return tuple(questions.values())


def is_right(prediction: str, question: RecordedQuestion) -> bool | None:
    """Return whether the prediction is one of the question's answers; temporal ones by SQuAD's exact match.

    None if the answers aren't known.
    """
    if not question.answers:
        return None
    return same(prediction, question.task) in {same(answer, question.task) for answer in question.answers}


def _question(line: _QuestionLine, default: Task, rules: ChainRules, place: str) -> RecordedQuestion:
    task = line.task or default
    if not line.id.strip():
        raise DatasetError(f"{place}: the id is empty; give the question one")
    answers = tuple(_verdict(answer, task) for answer in line.answers)
    chains = tuple(
        _chain(chain, task, rules, f"{place}, $.chains[{number}]") for number, chain in enumerate(line.chains)
    )
    return RecordedQuestion(id=line.id, text=line.question, answers=answers, task=task, chains=chains)


def _chain(chain: _Chain, task: Task, rules: ChainRules, place: str) -> ScoredChain:
    if chain.text is None and chain.prediction is None:
        raise DatasetError(
            f'{place}: the chain has neither text nor prediction; give one of them, as "" where it states no answer'
        )
    text = chain.text or ""
    return ScoredChain(
        text=text,
        prediction=prediction(text, task, rules) if chain.prediction is None else _verdict(chain.prediction, task),
        facts=tuple(_fact(each, f"{place}.sentences[{number}]") for number, each in enumerate(chain.sentences)),
    )


def _fact(sentence: _Sentence, place: str) -> ScoredFact:
    given = [scores for scores in (sentence.named, sentence.lettered) if scores != (None, None, None)]
    match given:
        case []:
            return ScoredFact(text=sentence.text, scores=NO_EVIDENCE)
        case [(float(m), float(e), float(c))]:
            return ScoredFact(text=sentence.text, scores=Scores(similarity=m, entailment=e, contradiction=c))
    raise DatasetError(
        f"{place}: give similarity, entailment and contradiction, or M, E and C, or none of them where no evidence was "
        "found"
    )


def _verdict(given: str, task: Task) -> str:
    """The given text, with a task's own verdicts in lower case and other predictions unchanged."""
    plain = given.strip()
    return plain.lower() if plain.lower() in VERDICTS[task] else plain
