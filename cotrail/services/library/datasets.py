"""Datasets: which there are, samples of their questions, and demonstrations that are built of their annotations."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cotrail.core.demonstrations import AnswerForm
from cotrail.data.datasets.loading import load_annotated, sample_file, suffix
from cotrail.data.datasets.registry import DATASETS, find_dataset
from cotrail.data.datasets.spec import AnnotatedQuestion
from cotrail.data.demonstrations import building
from cotrail.data.demonstrations.sets import write_demonstrations
from cotrail.errors import DemonstrationError, InputError
from cotrail.services.access.grants import seen_corpora
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation


class ListedDataset(Struct, frozen=True, kw_only=True):
    """A dataset; title to kinds: see `DatasetSpec`.

    formats: the forms in which its files are read.
    corpus: the files that `cotrail data build` makes its corpus from, None where it has no recipe; paper_paragraphs:
        how many paragraphs the paper's has.
    """

    title: str
    files: str
    source: str
    asks: str
    metric: str
    kinds: str
    name: str
    formats: tuple[str, ...]
    corpus: str | None
    paper_paragraphs: int | None


@operation("datasets.index", "GET", "/datasets", Scope.READ)
def list_datasets() -> tuple[ListedDataset, ...]:
    """List the datasets whose questions can be read."""
    return tuple(describe_dataset(name) for name in DATASETS)


@operation("datasets.show", "GET", "/datasets/{dataset}", Scope.READ)
def describe_dataset(dataset: str) -> ListedDataset:
    """Show a dataset: its files, where to get them, its metric and its corpus."""
    spec = find_dataset(dataset)
    named = {name: getattr(spec, name) for name in ("title", "files", "source", "asks", "metric", "kinds")}
    return ListedDataset(
        **named,
        name=dataset,
        formats=tuple(form.format.holds for form in spec.forms),
        corpus=spec.recipe.needs if spec.recipe else None,
        paper_paragraphs=spec.recipe.paper_paragraphs if spec.recipe else None,
    )


class SampledFiles(Struct, frozen=True, kw_only=True):
    """The question files that a sample was written to."""

    development: str
    test: str


def sample(dataset: str, path: Path, output: Path, *, development: int, test: int, seed: int) -> SampledFiles:
    """Draws that many development and test questions, none in both, and writes them into the folder `output`.

    InputError where a file is there with other content.
    """
    contents = sample_file(dataset, path, development, test, seed)
    targets = [output / f"{name}{suffix(dataset, path)}" for name in ("development", "test")]
    output.mkdir(parents=True, exist_ok=True)
    for target, content in zip(targets, contents, strict=True):
        _write(target, content)
    if companion := find_dataset(dataset).companion:
        # The dataset's reader expects that file next to the questions.
        source, target = path.parent / companion, output / companion
        if source.is_file() and not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)
    return SampledFiles(development=str(targets[0]), test=str(targets[1]))


def _write(path: Path, content: bytes) -> None:
    if path.exists() and path.read_bytes() != content:
        raise InputError(f"{path} is there already and holds something else; name another folder or remove it")
    path.write_bytes(content)


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
    shape: building.DemonstrationShape | None = None
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
        targets = {request.output / shape.filename: shape for shape in building.shapes(annotated)}
    else:
        targets = {request.output: request.shape}
    contents = {
        path: write_demonstrations(building.build_demonstrations(annotated, shape, request.seed)).encode()
        for path, shape in targets.items()
    }
    write_files(contents)
    return [_described(path, shape, annotated, request.seed) for path, shape in targets.items()]


def _annotated(request: BuildRequest) -> tuple[AnnotatedQuestion, ...]:
    chains = None if request.annotations is None else building.read_chains(request.annotations)
    lookup = seen_corpora().open(request.corpus).paragraphs if request.corpus else None
    loaded = load_annotated(request.dataset, request.questions, lookup)
    if request.annotations is not None and chains is not None:
        return building.with_chains(loaded, chains, request.annotations)
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
    path: Path, shape: building.DemonstrationShape, annotated: Sequence[AnnotatedQuestion], seed: int
) -> WrittenDemonstrations:
    number = 0 if shape.form is AnswerForm.TITLES else shape.distractors
    fewer = sum(len(building.choose_distractors(each, number, seed)) < number for each in annotated)
    return WrittenDemonstrations(
        path=str(path), demonstrations=len(annotated), distractors=number, fewer_distractors=fewer
    )
