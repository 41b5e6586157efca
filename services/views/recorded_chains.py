"""Faithful inference over recorded chains: final predictions from chains and scores in a file, without a model."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cotrail.faithfulness.chains import weigh
from cotrail.faithfulness.recorded import RecordedQuestion, is_right, read_recorded
from cotrail.faithfulness.scores import FUNCTIONS, Function, Thresholds
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.rules import Rules


class InferenceOptions(Struct, frozen=True, kw_only=True):
    """Options of the inference (Rethinking with Retrieval, section 3.3 and appendix A.2).

    task: of questions that name none; chains: only the first of each question, all where None.
    voting: add up over equal predictions, or else take the best chain's.
    function: of the appendix; the task's own where None.
    """

    task: Task = "commonsense"
    chains: int | None = None
    voting: bool = True
    rules: Rules = "paper"
    function: Function | None = None
    thresholds: Thresholds = Thresholds()


class Rethought(Struct, frozen=True, kw_only=True):
    """A question's final prediction, empty where no chain states one; `right` is None where no answer is given."""

    id: str
    question: str
    task: Task
    answers: tuple[str, ...]
    prediction: str
    right: bool | None
    weighing: Weighing


def rethink(file: Path, options: InferenceOptions) -> list[Rethought]:
    """The final predictions for a file of questions with chains and scores (docs/recorded-chains.md)."""
    return [
        _rethought(replace(question, chains=question.chains[: options.chains]), options)
        for question in read_recorded(file, options.task, options.rules)
    ]


def _rethought(question: RecordedQuestion, options: InferenceOptions) -> Rethought:
    weighing = weigh(
        question.chains,
        question.task,
        function=options.function or FUNCTIONS[question.task],
        thresholds=options.thresholds,
        voting=options.voting,
        rules=options.rules,
    )
    prediction = weighing.predictions[0].prediction.strip() if weighing.predictions else ""
    return Rethought(
        id=question.id,
        question=question.text,
        task=question.task,
        answers=question.answers,
        prediction=prediction,
        right=is_right(prediction, question),
        weighing=weighing,
    )
