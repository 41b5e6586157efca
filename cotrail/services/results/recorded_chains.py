"""Chains that were written before: predictions inferred from recorded ones, and demonstrations made of a run's own."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cotrail.configuration.settings import settings
from cotrail.core.actions.embed import Embed
from cotrail.core.ports.encoders import EMBEDDER, Embedder
from cotrail.data.demonstrations.self_written import Simple, SolvedQuestion, self_written
from cotrail.data.demonstrations.sets import write_demonstrations
from cotrail.engines.engine_kinds import find_engine
from cotrail.errors import InputError
from cotrail.faithfulness.recorded import RecordedQuestion, is_right, read_recorded
from cotrail.faithfulness.rules import weigh
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import FUNCTIONS, Function, Thresholds, Weighing
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import read_questions
from cotrail.services.library.datasets import write_files
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading
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


# Demonstration files from the chains that a run wrote without any (Auto-CoT).

SYSTEM = "zero-shot-chain-of-thought"


class SelfWrittenRequest(Struct, frozen=True, kw_only=True):
    """Request for a demonstration file.

    run: a finished one of zero-shot chain of thought, over questions for training. output: the file to write.
    number: of clusters, and so of demonstrations at most. embedder: the one that compares questions; the run's own or
        the default one where None. seed: of the clusters; the run's where None.
    """

    run: str
    output: Path
    number: int
    simple: Simple = Simple()
    embedder: str | None = None
    seed: int | None = None


class WrittenChains(Struct, frozen=True, kw_only=True):
    """A demonstration file just written: from how many questions, by which embedder, and how many demonstrations."""

    path: str
    run: str
    questions: int
    embedder: str
    demonstrations: int


def build_from_run(request: SelfWrittenRequest) -> WrittenChains:
    """Clusters the run's questions, and writes the file; InputError where the run isn't one that can be used."""
    record, solved = _solved(request.run)
    name = request.embedder or record.embedder_name or None
    embedder: Embedder = find_engine(settings().catalogue_path, EMBEDDER.kind, name).open("fast")
    [compared] = embedder.compare([Embed(sentences=tuple(each.question for each in solved))])
    seed = record.seed if request.seed is None else request.seed
    made = self_written(solved, compared.similarities, request.number, seed, request.simple)
    write_files({request.output: write_demonstrations(made).encode()})
    return WrittenChains(
        path=str(request.output),
        run=record.id,
        questions=len(solved),
        embedder=embedder.identity,
        demonstrations=len(made.items),
    )


def _solved(run: str) -> tuple[RunRecord, tuple[SolvedQuestion, ...]]:
    with reading() as connection:
        record = find_run(connection, run)
        if record.system != SYSTEM:
            raise InputError(f"the run {record.id} is of {record.system}; name one of {SYSTEM}")
        questions = tuple(read_questions(connection, record.id))
    if any(each.status in ("open", "blocked") for each in questions):
        raise InputError(f"the run {record.id} isn't finished; `cotrail watch {record.id}` says when it is")
    solved = tuple(
        SolvedQuestion(id=each.key, question=each.text, steps=each.sentences, answer=each.answer)
        for each in questions
        if each.answer
    )
    if not solved:
        raise InputError(f"the run {record.id} has no answers; name another")
    return record, solved
