"""Building a corpus file so that it can be interrupted anywhere, `kill -9` included, and gone on with.

The corpus grows in a file `NAME.part`. Now and then what was written is put on the disk, and only then `NAME.state`
says so. Going on cuts the file back to what the state says, checks that the input so far is the same, and reads on from
there: the result is byte for byte that of an undisturbed build.
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

from cotrail.common.file_locks import lock_exclusively
from cotrail.data.corpora.checkpoints import (
    NOTHING,
    Checkpoint,
    checkpoint_path,
    combined_digest,
    draft_path,
    file_digest,
    read_checkpoint,
    write_checkpoint,
)
from cotrail.data.corpora.digest_set import DigestSet
from cotrail.data.corpora.paragraph_ids import ID_DIGITS, identified
from cotrail.data.corpora.recipes import Recipe, find_recipe
from cotrail.data.datasets.file_formats import apparent_content
from cotrail.errors import CorpusError

CHECKPOINT_EVERY = 20_000
"""How many paragraphs may have to be read again after a crash."""

PROGRESS_EVERY = 500
"""After how many records progress is told."""

_ID_BEGINS = b'{"id":"'


class BuildProgress(Struct, frozen=True, kw_only=True):
    """How far a build is: bytes of the input files, and paragraphs written."""

    done: int
    total: int
    paragraphs: int


class Built(Struct, frozen=True, kw_only=True):
    """A corpus file that is whole.

    duplicates: how many paragraphs were left out, their content being there before.
    resumed: how many paragraphs an earlier, interrupted build had written; anew: whether there was anything to do.
    """

    output: Path
    paragraphs: int
    duplicates: int
    resumed: int
    anew: bool


def build_corpus(
    dataset: str,
    paths: Sequence[Path],
    output: Path,
    *,
    seed: int = 0,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    checkpoint_every: int = CHECKPOINT_EVERY,
) -> Built:
    """Writes the dataset's corpus as JSON Lines of `{"id", "title", "text"}`, each content once.

    An interrupted build is gone on with; a finished one is left as it is. CorpusError: input that can't be used, with
    its place (what was built before it is kept), or that isn't what the build was begun with.
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
            return _built(output, state, resumed=0, anew=False)
        with _only_builder(output) as draft:
            last = _Builder(recipe, files, draft, state).run(output, progress, checkpoint_every)
            draft_path(output).replace(output)
    except OSError as error:
        raise CorpusError(
            f"{output} can't be built ({error}); mend that and give the same command, which goes on from here"
        ) from error
    return _built(output, last, resumed=state.paragraphs, anew=True)


def _built(output: Path, state: Checkpoint, *, resumed: int, anew: bool) -> Built:
    return Built(output=output, paragraphs=state.paragraphs, duplicates=state.duplicates, resumed=resumed, anew=anew)


def _found(output: Path, begun: Checkpoint) -> Checkpoint:
    """The state to go on from; refuses what isn't this build."""
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
    """Whether the corpus is there, and of these files; an error where it is of other ones."""
    if not (state.finished and output.exists()):
        return False
    if output.stat().st_size != state.size:
        raise _other(output, "was changed after it was built")
    if (len(files), combined_digest(files).hexdigest()) != (state.files, state.files_digest):
        raise _other(output, "was built from other files")
    return True


def _other(output: Path, reason: str) -> CorpusError:
    there = " and ".join(str(path) for path in (output, draft_path(output), checkpoint_path(output)) if path.exists())
    return CorpusError(f"{output} {reason}; give the command that it was begun with, or remove {there} to begin anew")


@contextmanager
def _only_builder(output: Path) -> Iterator[BinaryIO]:
    """The unfinished corpus, locked; the kernel takes the lock back when the process dies."""
    with draft_path(output).open("ab+") as file:
        lock_exclusively(file.fileno(), CorpusError(f"another process is building {output}; wait until it is done"))
        yield file


class _Builder:
    """Writes the paragraphs of the files, from where the state says on; `draft` is the unfinished corpus."""

    def __init__(self, recipe: Recipe, files: Sequence[Path], draft: BinaryIO, state: Checkpoint) -> None:
        self._recipe = recipe
        self._files = files
        self._draft = draft
        self._state = state
        self._ends = [0, *accumulate(path.stat().st_size for path in files)]
        self._seen = DigestSet()
        self._encode = msgspec.json.Encoder().encode

    def run(self, output: Path, progress: Callable[[BuildProgress], None], checkpoint_every: int) -> Checkpoint:
        """Goes on to the end; whatever stops it, the state of what is done is kept. The last state."""
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
            with suppress(OSError):  # then what was said last holds
                self._checkpoint(output) if self._handled() else draft_path(output).unlink()
            raise
        self._checkpoint(output)
        return self._state

    def _handled(self) -> int:
        return self._state.paragraphs + self._state.duplicates

    def _checkpoint(self, output: Path) -> None:
        self._draft.flush()
        os.fsync(self._draft.fileno())
        write_checkpoint(output, self._state)

    def _go_back(self, output: Path) -> None:
        """Leaves in the unfinished corpus what the state speaks of, and notes what that is."""
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
        """Reads the files; after every so many records comes how many of their bytes are done."""
        before = self._files[: self._state.files]
        digest = combined_digest(before)
        if (len(before), digest.hexdigest()) != (self._state.files, self._state.files_digest):
            raise _other(output, "was begun with other files")
        for number, path in enumerate(self._files[len(before) :], start=len(before)):
            with path.open("rb") as file:
                yield from (self._ends[number] + done for done in self._records(output, path, file))
            digest.update(file_digest(path))
            self._state = replace(
                self._state,
                files=number + 1,
                files_digest=digest.hexdigest(),
                records=0,
                records_digest=NOTHING,
            )
            yield self._ends[number + 1]

    def _records(self, output: Path, path: Path, file: BinaryIO) -> Iterator[int]:
        """Reads a file; the records that are done already are only compared."""
        what = apparent_content(path, CorpusError)
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
        """Writes a record's paragraphs that weren't there before."""
        state = self._state
        found = [identified(title, text) for title, text in self._recipe.paragraphs(place, raw, state.seed)]
        new = [paragraph for paragraph in found if self._seen.add(bytes.fromhex(paragraph.id))]
        lines = b"".join(self._encode(paragraph) + b"\n" for paragraph in new)
        self._draft.write(lines)
        self._state = replace(
            state,
            records=number,
            records_digest=digest,
            size=state.size + len(lines),
            paragraphs=state.paragraphs + len(new),
            duplicates=state.duplicates + len(found) - len(new),
        )
