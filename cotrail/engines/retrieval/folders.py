"""Indexes in folders, of any engine: built whole or not at all, and opened as their manifests say."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from cotrail.common.file_locks import exclusive_folder
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.retrieval.engine import FolderEngine, NoSettings
from cotrail.engines.retrieval.index_manifest import FolderManifest
from cotrail.engines.retrieval.manifest import Revision, installed, read_manifest, unusable, write_manifest
from cotrail.engines.retrieval.registry import folder_engine
from cotrail.errors import CorpusError, CotrailError, UnknownNameError

PROGRESS_EVERY = 1_000
"""Number of paragraphs between two calls of the progress callback."""


def build_index(
    paragraphs: Iterable[Paragraph],
    directory: Path,
    progress: Callable[[int], None] | None = None,
    *,
    engine: FolderEngine | None = None,
    settings: Struct | None = None,
) -> FolderManifest:
    """Indexes the paragraphs, whose ids are distinct, in this folder.

    An existing index stays as it is, and is searched, until this one is complete; an error or an interruption leaves
    nothing behind. progress: called with the number of paragraphs so far. engine: tantivy without one; settings: of the
    engine's type.
    """
    engine, settings = engine or folder_engine("tantivy"), settings or NoSettings()
    report = progress or (lambda _count: None)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with exclusive_folder(directory, being_built(directory)):
            return _replace(directory, lambda folder: _build(folder, engine, settings, paragraphs, report))
    except (OSError, ValueError) as error:
        raise CorpusError(f"no index can be built in {directory} ({error}); check the folder and its disk") from error


def being_built(directory: Path) -> CorpusError:
    """The error while another process has the folder's lock."""
    return CorpusError(f"another process is building the index in {directory}; wait until it is done")


def open_index(directory: Path) -> Corpus:
    """The index in this folder; raises CorpusError where there is none that can be used, NotInstalledError."""
    manifest = read_manifest(directory)
    try:
        engine = folder_engine(manifest.engine)
        if manifest.format != engine.format:
            raise unusable(directory, "it was built by another version of cotrail")
        return engine.open(directory / manifest.folder, manifest)
    except UnknownNameError as error:
        raise unusable(directory, f"it was built by {manifest.engine}, which isn't here") from error
    except CotrailError:
        raise
    except Exception as error:
        raise unusable(directory, error) from error


def _replace(directory: Path, build: Callable[[Path], FolderManifest]) -> FolderManifest:
    """Builds the index beside the former one, switches to it by replacing the manifest, and deletes the former."""
    folder = directory / f"index-{secrets.token_hex(6)}"
    try:
        manifest = build(folder)
        write_manifest(directory, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # it isn't empty where there is a former index
            directory.rmdir()
        raise
    for other in directory.glob("index-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return manifest


def _build(
    folder: Path,
    engine: FolderEngine,
    settings: Struct,
    paragraphs: Iterable[Paragraph],
    progress: Callable[[int], None],
) -> FolderManifest:
    ranking, recorded = engine.ranking(settings), msgspec.to_builtins(settings)
    revision = Revision(ranking, recorded)
    folder.mkdir()
    engine.build(folder, _reported(revision, paragraphs, progress), settings)
    progress(revision.count)
    return FolderManifest(
        revision=str(revision),
        paragraphs=revision.count,
        created_by={name: installed(name) for name in dict.fromkeys(("cotrail", engine.library))},
        engine=engine.name,
        format=engine.format,
        settings=recorded,
        folder=folder.name,
        **structs.asdict(ranking),
    )


def _reported(
    revision: Revision, paragraphs: Iterable[Paragraph], progress: Callable[[int], None]
) -> Iterator[Paragraph]:
    for paragraph in revision.counted(paragraphs):
        yield paragraph
        if revision.count % PROGRESS_EVERY == 0:
            progress(revision.count)
