"""Files of sampled questions, in the format of the file that they are drawn from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cotrail.core.questions import Paragraph
from cotrail.data.datasets.loading import form_of, read_records
from cotrail.data.datasets.sampling import drawn
from cotrail.data.datasets.spec import QuestionRecord


def sample_file(dataset: str, path: Path, development: int, test: int, seed: int) -> tuple[bytes, bytes]:
    """Make the same draw from a file; returns the contents of two files of the same format, records unchanged.

    An IIRC question comes with its passage, without the passage's other questions.
    """
    records = list(read_records(dataset, path, _any_paragraph))
    first, second = drawn(records, lambda record: record.annotated.question.id, development, test, seed)
    return _content(dataset, path, first), _content(dataset, path, second)


def suffix(dataset: str, path: Path) -> str:
    """The suffix for files that are drawn from this one."""
    form = form_of(dataset, path)
    return form.suffix or (path.suffix if form.written else ".json" if form.format.is_list else ".jsonl")


def _content(dataset: str, path: Path, records: Iterable[QuestionRecord]) -> bytes:
    form, stripped = form_of(dataset, path), [record.raw.strip() for record in records]
    if form.written:
        return form.written(path, stripped)
    if form.format.is_list:
        return b"[" + b",\n".join(stripped) + b"]\n"
    return b"".join(raw + b"\n" for raw in stripped)


def _any_paragraph(ids: Sequence[str]) -> dict[str, Paragraph]:
    """Placeholders for gold paragraphs given by id: a draw doesn't need the corpus."""
    return {id_: Paragraph(id=id_, title="", text="") for id_ in ids}
