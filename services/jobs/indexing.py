"""Indexing as a job: the request for it, and its work."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.engines.retrieval.corpus_store import NewIndex
from cotrail.engines.retrieval.registry import find_engine
from cotrail.errors import InputError
from cotrail.models.commands.jobs import queue_job
from cotrail.models.queries.jobs import last_finished
from cotrail.models.records.jobs import JobRecord
from cotrail.models.records.projects import own_project
from cotrail.services.access.corpora import seen_corpora
from cotrail.services.data.file_references import check_relative, read_reference
from cotrail.services.data.uploaded_files import reference_of
from cotrail.services.data.uploaded_folders import fill_folder
from cotrail.services.jobs.work import Work
from cotrail.services.lists.corpora import Indexed, index

INDEX = "index"


class IndexRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a corpus: its name, its files and folders, and the engine that is to search it with its settings.

    places: the paths of the files beside each other, from which documents have their ids; their names by default.
    """

    name: str
    files: tuple[str, ...]
    places: tuple[str, ...] = ()
    engine: str | None = None
    settings: dict[str, Any] = {}

    def with_files(self, move: Callable[[str], str]) -> "IndexRequest":
        """The same request with its files in the places that `move` gives."""
        return replace(self, files=tuple(map(move, self.files)), places=self.places or _places(self.files))


def queue_index(connection: Connection, request: IndexRequest) -> JobRecord:
    """Queue a corpus to be made; where the same was made already and is there still, the job that did is returned.

    Raises InputError where the corpus can't have this name, or a file is none that was uploaded.
    """
    if not request.files or len(request.places) != len(request.files):
        raise InputError("a corpus is made of `files`, at least one, and `places` are as many as these")
    if request.engine is not None:
        find_engine(request.engine)
    for place in request.places:
        check_relative(place)
    corpora = seen_corpora()
    corpora.own_name(request.name)
    stored = replace(request, files=tuple(map(reference_of, request.files)))
    asked = msgspec.json.decode(msgspec.json.encode(stored))  # as the store returns it
    made = last_finished(connection, own_project(connection), INDEX, request.name)
    if made is not None and made.request == asked and made.result is not None:
        there = corpora.manifests().get(request.name)
        if there is not None and there.revision == made.result["revision"]:
            return made
    return queue_job(connection, INDEX, asked)


def carry_out(work: Work) -> Indexed:
    """Index the files of a job's request."""
    request = msgspec.convert(work.request, IndexRequest)
    fill_folder(work.folder, dict(zip(request.places, request.files, strict=True)))
    paths = [work.folder / place for place in request.places]
    new = NewIndex(engine=request.engine, settings=request.settings)
    return index(paths, request.name, work.progress, new)


def _places(files: Iterable[str]) -> tuple[str, ...]:
    """The paths of files beside each other; the names of uploaded ones."""
    try:
        references = [read_reference(each) for each in files]
    except InputError:
        paths = [Path(os.path.abspath(each)) for each in files]  # noqa: PTH100 - links keep their names
        root = os.path.commonpath([path.parent for path in paths]) if paths else ""
        return tuple(str(PurePosixPath(path.relative_to(root))) for path in paths)
    return tuple(each.name or each.digest for each in references)
