"""Crash-safe, resumable building of corpus files: it may be interrupted anywhere, `kill -9` included.

The corpus grows in a file `NAME.part`. At each checkpoint its data is flushed to disk first, and only then
`NAME.state` is replaced: the state never claims more than what is on the disk. Resuming truncates the file to the
checkpoint, verifies by digest that the input up to there is unchanged, and continues: the result is byte for byte that
of an uninterrupted build.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.processes import lock_exclusively
from cotrail.common.text_files import skip_mark, write_whole
from cotrail.data.corpora.paragraph_ids import ID_DIGITS, DigestSet, identified
from cotrail.data.datasets.loading import apparent_content
from cotrail.data.datasets.registry import find_recipe, question_formats
from cotrail.data.datasets.spec import Recipe
from cotrail.errors import CorpusError

EMPTY_DIGEST = hashlib.sha256().hexdigest()
"""The digest of empty input."""


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A position in the input, and the output at that position.

    files: input files completed; files_digest: the SHA-256 of their contents' digests.
    records: records of the next file completed; records_digest: their SHA-256.
    size: bytes of the output; paragraphs: their number in it; duplicates: paragraphs left out.
    """

    dataset: str
    seed: int
    files: int = 0
    files_digest: str = EMPTY_DIGEST
    records: int = 0
    records_digest: str = EMPTY_DIGEST
    size: int = 0
    paragraphs: int = 0
    duplicates: int = 0
    finished: bool = False


def checkpoint_path(output: Path) -> Path:
    """The path of a corpus's checkpoint."""
    return output.with_name(f"{output.name}.state")


def draft_path(output: Path) -> Path:
    """The path of a corpus while it is incomplete."""
    return output.with_name(f"{output.name}.part")


def read_checkpoint(output: Path) -> Checkpoint | None:
    """Read the checkpoint of a corpus; None where there is none."""
    path = checkpoint_path(output)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{path} can't be used ({error}); remove it and {draft_path(output)} to start over"
        ) from error


def combined_digest(paths: Sequence[Path]) -> "hashlib._Hash":
    """Digest over the files' contents in this order, regardless of their names; further files can be added to it."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(file_digest(path))
    return digest


def file_digest(path: Path) -> bytes:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


CHECKPOINT_EVERY = 20_000
"""Paragraphs between two checkpoints: the most that must be processed again after a crash."""

PROGRESS_EVERY = 500
"""Records between two reports of progress."""

_ID_BEGINS = b'{"id":"'


class BuildProgress(Struct, frozen=True, kw_only=True):
    """Progress of a build: bytes of the input files, and paragraphs written."""

    done: int
    total: int
    paragraphs: int


class CompleteCorpus(Struct, frozen=True, kw_only=True):
    """A complete corpus file.

    duplicates: paragraphs left out because their content had come before.
    resumed: paragraphs that an earlier, interrupted build had written; is_new: False if the file was complete already.
    """

    output: Path
    paragraphs: int
    duplicates: int
    resumed: int
    is_new: bool


def build_corpus(
    dataset: str,
    paths: Sequence[Path],
    output: Path,
    *,
    seed: int = 0,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    checkpoint_every: int = CHECKPOINT_EVERY,
) -> CompleteCorpus:
    """Write the dataset's corpus as JSON Lines of `{"id", "title", "text"}`, each content once.

    An interrupted build is resumed; a finished one is left as it is. CorpusError: input that can't be used, with its
    place (the build can be resumed from there), or other input than the build was started with.
    """
    recipe = find_recipe(dataset)
    files = recipe.files(paths)
    if missing := [path for path in files if not path.is_file()]:
        raise CorpusError(f"{missing[0]} isn't a file that can be read; name {recipe.needs}")
    begun = Checkpoint(dataset=dataset, seed=seed if recipe.shuffles else 0)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        state = _found(output, begun)
        if _is_whole(output, state, files):
            return _built(output, state, resumed=0, is_new=False)
        with _only_builder(output) as draft:
            last = _Builder(recipe, files, draft, state).run(output, progress, checkpoint_every)
            draft_path(output).replace(output)
    except OSError as error:
        raise CorpusError(
            f"{output} can't be built ({error}); fix that and repeat the command, which continues from here"
        ) from error
    return _built(output, last, resumed=state.paragraphs, is_new=True)


def _built(output: Path, state: Checkpoint, *, resumed: int, is_new: bool) -> CompleteCorpus:
    return CompleteCorpus(
        output=output, paragraphs=state.paragraphs, duplicates=state.duplicates, resumed=resumed, is_new=is_new
    )


def _found(output: Path, begun: Checkpoint) -> Checkpoint:
    """The checkpoint to resume from, `begun` for a new build; CorpusError where there is another build's."""
    state = read_checkpoint(output)
    if state is None:
        if output.exists():
            raise CorpusError(f"{output} is there already, and not from this command; name another one or remove it")
        return begun
    if state.finished and not output.exists() and not draft_path(output).exists():
        return begun
    if (state.dataset, state.seed) != (begun.dataset, begun.seed):
        raise _other(output, f"was begun for {state.dataset} with the seed {state.seed}")
    return state


def _is_whole(output: Path, state: Checkpoint, files: Sequence[Path]) -> bool:
    """Return whether the corpus is complete and was built from these files; CorpusError if from other files."""
    if not (state.finished and output.exists()):
        return False
    if output.stat().st_size != state.size:
        raise _other(output, "was changed after it was built")
    if (len(files), combined_digest(files).hexdigest()) != (state.files, state.files_digest):
        raise _other(output, "was built from other files")
    return True


def _other(output: Path, reason: str) -> CorpusError:
    there = " and ".join(str(path) for path in (output, draft_path(output), checkpoint_path(output)) if path.exists())
    return CorpusError(f"{output} {reason}; give the command that it was begun with, or remove {there} to start over")


@contextmanager
def _only_builder(output: Path) -> Iterator[BinaryIO]:
    """Open and lock the unfinished corpus; CorpusError while another process builds it."""
    with draft_path(output).open("ab+") as file:
        lock_exclusively(file.fileno(), CorpusError(f"another process is building {output}; wait until it is done"))
        yield file


class _Builder:
    """Writes the paragraphs of the files from the checkpoint on; draft: the unfinished corpus."""

    def __init__(self, recipe: Recipe, files: Sequence[Path], draft: BinaryIO, state: Checkpoint) -> None:
        self._recipe = recipe
        self._files = files
        self._draft = draft
        self._state = state
        self._ends = [0, *accumulate(path.stat().st_size for path in files)]
        self._seen = DigestSet()
        self._encode = msgspec.json.Encoder().encode

    def run(self, output: Path, progress: Callable[[BuildProgress], None], checkpoint_every: int) -> Checkpoint:
        """Build to the end and return the last checkpoint; the progress so far survives any interruption."""
        self._go_back(output)
        due = self._handled() + checkpoint_every
        try:
            for done in self._steps(output):
                progress(BuildProgress(done=done, total=self._ends[-1], paragraphs=self._state.paragraphs))
                if self._handled() >= due:
                    self._checkpoint(output)
                    due = self._handled() + checkpoint_every
            if not self._state.paragraphs:
                raise CorpusError(f"there are no paragraphs in the files; name {self._recipe.needs}")
            self._state = replace(self._state, finished=True)
        except BaseException:
            # BaseException: Ctrl-C must save the progress too. If the disk is full, the previous checkpoint holds.
            with suppress(OSError):
                self._checkpoint(output) if self._handled() else draft_path(output).unlink()
            raise
        self._checkpoint(output)
        return self._state

    def _handled(self) -> int:
        return self._state.paragraphs + self._state.duplicates

    def _checkpoint(self, output: Path) -> None:
        # This order makes a crash harmless: a state on disk must never describe data that isn't there yet.
        self._draft.flush()
        os.fsync(self._draft.fileno())
        write_whole(checkpoint_path(output), [msgspec.json.encode(self._state), b"\n"])

    def _go_back(self, output: Path) -> None:
        """Truncate the unfinished corpus to the checkpoint, and collect the ids of the paragraphs that it holds."""
        if self._draft.seek(0, os.SEEK_END) < self._state.size:
            raise _other(output, "lacks some of what was written")
        self._draft.truncate(self._state.size)
        self._draft.seek(0)
        start = len(_ID_BEGINS)
        try:
            for line in self._draft:
                self._seen.add(bytes.fromhex(line[start : start + ID_DIGITS].decode()))
        except ValueError as error:
            raise _other(output, "was changed meanwhile") from error

    def _steps(self, output: Path) -> Iterator[int]:
        """Process the files; yields the number of bytes done at every report of progress."""
        before = self._files[: self._state.files]
        digest = combined_digest(before)
        if (len(before), digest.hexdigest()) != (self._state.files, self._state.files_digest):
            raise _other(output, "was begun with other files")
        for number, path in enumerate(self._files[len(before) :], start=len(before)):
            with path.open("rb") as file:
                skip_mark(file, str(path), CorpusError)
                yield from (self._ends[number] + done for done in self._records(output, path, file))
            digest.update(file_digest(path))
            self._state = replace(
                self._state, files=number + 1, files_digest=digest.hexdigest(), records=0, records_digest=EMPTY_DIGEST
            )
            yield self._ends[number + 1]

    def _records(self, output: Path, path: Path, file: BinaryIO) -> Iterator[int]:
        """Process a file; records before the checkpoint are only hashed, to verify that they are the same."""
        what = apparent_content(path, question_formats(), CorpusError)
        if what not in (None, self._recipe.seems):
            raise CorpusError(f"{path} seems {what}, going by how it begins; name {self._recipe.needs}")
        done, digest, number = self._state.records, hashlib.sha256(), 0
        for number, (place, raw) in enumerate(self._recipe.records(file, str(path)), start=1):
            digest.update(raw)
            if number > done:
                self._take(place, raw, number, digest.hexdigest())
            elif number == done and digest.hexdigest() != self._state.records_digest:
                raise _other(output, f"was begun with another {path}")
            if number % PROGRESS_EVERY == 0:
                yield file.tell()
        if number < done:
            raise _other(output, f"was begun with another {path}")

    def _take(self, place: str, raw: bytes, number: int, digest: str) -> None:
        """Write the paragraphs of a record that haven't come before."""
        state = self._state
        paragraphs = [identified(title, text) for title, text in self._recipe.paragraphs(place, raw, state.seed)]
        new = [paragraph for paragraph in paragraphs if self._seen.add(bytes.fromhex(paragraph.id))]
        lines = b"".join(self._encode(paragraph) + b"\n" for paragraph in new)
        self._draft.write(lines)
        self._state = replace(
            state,
            records=number,
            records_digest=digest,
            size=state.size + len(lines),
            paragraphs=state.paragraphs + len(new),
            duplicates=state.duplicates + len(paragraphs) - len(new),
        )
