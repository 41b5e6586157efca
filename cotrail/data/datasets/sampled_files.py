"""Files of sampled questions, in the format of the file that they are drawn from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cotrail.common.json_files import is_list
from cotrail.core.paragraphs import Paragraph
from cotrail.data.datasets import big_bench, infotabs
from cotrail.data.datasets.annotated import QuestionRecord
from cotrail.data.datasets.file_formats import BIG_BENCH, detect_format
from cotrail.data.datasets.loading import read_records
from cotrail.data.datasets.sampling import drawn
from cotrail.errors import DatasetError


def sample_file(dataset: str, path: Path, development: int, test: int, seed: int) -> tuple[bytes, bytes]:
    """Make the same draw from a file; returns the contents of two files of the same format, records unchanged.

    An IIRC question comes with its passage, without the passage's other questions.
    """
    records = list(read_records(dataset, path, _any_paragraph))
    first, second = drawn(records, lambda record: record.annotated.question.id, development, test, seed)
    return _content(dataset, path, first), _content(dataset, path, second)


def suffix(dataset: str, path: Path) -> str:
    """The suffix for files that are drawn from this one."""
    if dataset == "infotabs":
        return ".tsv"
    return ".json" if is_list(path, DatasetError) or _is_task(path) else ".jsonl"


def _content(dataset: str, path: Path, records: Iterable[QuestionRecord]) -> bytes:
    stripped = [record.raw.strip() for record in records]
    if _is_task(path):
        return big_bench.wrapped(stripped)
    if is_list(path, DatasetError):
        return b"[" + b",\n".join(stripped) + b"]\n"
    head = [infotabs.header(path)] if dataset == "infotabs" else []
    return b"".join(raw + b"\n" for raw in (*head, *stripped))


def _is_task(path: Path) -> bool:
    return detect_format(path, DatasetError) == BIG_BENCH


def _any_paragraph(ids: Sequence[str]) -> dict[str, Paragraph]:
    """Placeholders for gold paragraphs given by id: a draw doesn't need the corpus."""
    return {id_: Paragraph(id=id_, title="", text="") for id_ in ids}
