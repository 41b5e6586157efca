"""Demonstration files from the chains that a run wrote without any (Auto-CoT)."""

from pathlib import Path

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.actions.embed import Embed
from cotrail.core.ports.embedder import EMBEDDER, Embedder
from cotrail.data.demonstrations.files import write_demonstrations
from cotrail.data.demonstrations.self_written import Simple, SolvedQuestion, self_written
from cotrail.engines.registry import find_engine
from cotrail.errors import InputError
from cotrail.models.queries.traces import read_questions
from cotrail.services.data.demonstrations import write_files
from cotrail.services.runs.named_runs import RunRecord, find_run
from cotrail.services.store import reading
from cotrail.systems import zero_shot_chain_of_thought

SYSTEM = zero_shot_chain_of_thought.SPECS[-1].name


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
    embedder = _embedder(request.embedder or record.embedder_name or None)
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


def _embedder(name: str | None) -> Embedder:
    opened: Embedder = find_engine(settings().catalogue_path, EMBEDDER.kind, name).open("fast")
    return opened
