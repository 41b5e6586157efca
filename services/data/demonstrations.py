"""Building of demonstration files from annotated questions."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cotrail.core.demonstrations import AnswerForm
from cotrail.data.datasets.annotated import AnnotatedQuestion
from cotrail.data.datasets.loading import load_annotated
from cotrail.data.demonstrations.building import DemonstrationShape, build_demonstrations, choose_distractors, shapes
from cotrail.data.demonstrations.chains import read_chains, with_chains
from cotrail.data.demonstrations.files import write_demonstrations
from cotrail.errors import DemonstrationError, InputError
from cotrail.services.access.corpora import seen_corpora


class BuildRequest(Struct, frozen=True, kw_only=True):
    """Request for demonstration files.

    questions, annotations: the question file, and one of chains; without it the chains are those of the question file.
    output: the file to write, or the folder where no shape is given.
    shape: the form, style and distractors of the one file; without it a file for every combination is written.
    seed: picks and shuffles paragraphs.
    corpus: where the gold paragraphs are that a `jsonl` file gives by id.
    """

    dataset: str
    questions: Path
    output: Path
    annotations: Path | None = None
    shape: DemonstrationShape | None = None
    seed: int = 0
    corpus: str | None = None


class WrittenDemonstrations(Struct, frozen=True, kw_only=True):
    """A demonstration file just written; fewer_distractors: how many of its questions have fewer than requested."""

    path: str
    demonstrations: int
    distractors: int
    fewer_distractors: int


def build(request: BuildRequest) -> list[WrittenDemonstrations]:
    """Builds and writes the files; InputError where one is there with other content, before any is written."""
    annotated = _annotated(request)
    if request.shape is None:
        targets = {request.output / shape.filename: shape for shape in shapes(annotated)}
    else:
        targets = {request.output: request.shape}
    contents = {
        path: write_demonstrations(build_demonstrations(annotated, shape, request.seed)).encode()
        for path, shape in targets.items()
    }
    write_files(contents)
    return [_described(path, shape, annotated, request.seed) for path, shape in targets.items()]


def _annotated(request: BuildRequest) -> tuple[AnnotatedQuestion, ...]:
    chains = None if request.annotations is None else read_chains(request.annotations)
    lookup = seen_corpora().open(request.corpus).paragraphs if request.corpus else None
    loaded = load_annotated(request.dataset, request.questions, lookup)
    if request.annotations is not None and chains is not None:
        return with_chains(loaded, chains, request.annotations)
    own = tuple(each for each in loaded if each.chain)
    if not own:
        raise DemonstrationError(
            f"no question of {request.questions} comes with a chain; name a file of them as `annotations`"
        )
    return own


def write_files(contents: dict[Path, bytes]) -> None:
    """Writes the files; InputError, before any is written, where one is there with other content."""
    # All are checked before any is written, so that a refusal leaves the folder as it was.
    for path, content in contents.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise InputError(f"{path} is there already and holds something else; name another or remove it")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _described(
    path: Path, shape: DemonstrationShape, annotated: Sequence[AnnotatedQuestion], seed: int
) -> WrittenDemonstrations:
    number = 0 if shape.form is AnswerForm.TITLES else shape.distractors
    fewer = sum(len(choose_distractors(each, number, seed)) < number for each in annotated)
    return WrittenDemonstrations(
        path=str(path), demonstrations=len(annotated), distractors=number, fewer_distractors=fewer
    )
