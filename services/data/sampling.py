"""Sampling of questions: development and test files drawn from a dataset's published file."""

import shutil
from pathlib import Path

from msgspec import Struct

from cotrail.data.datasets.registry import find_dataset
from cotrail.data.datasets.sampled_files import sample_file, suffix
from cotrail.errors import InputError


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
        _copy(path.parent / companion, output / companion)
    return SampledFiles(development=str(targets[0]), test=str(targets[1]))


def _write(path: Path, content: bytes) -> None:
    if path.exists() and path.read_bytes() != content:
        raise InputError(f"{path} is there already and holds something else; name another folder or remove it")
    path.write_bytes(content)


def _copy(source: Path, target: Path) -> None:
    """Copies the file that the dataset's reader expects beside the questions."""
    if source.is_file() and not (target.exists() and target.samefile(source)):
        shutil.copyfile(source, target)
