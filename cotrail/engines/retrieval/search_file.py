"""The file `search.toml`: settings of new indexes on the search server, and existing indexes that are corpora."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.dotted_names import dotted
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.engines.retrieval.existing_index import ExistingIndex
from cotrail.engines.retrieval.manifest import checked_name
from cotrail.errors import InputError

RESERVED_SETTINGS = ("analysis", "blocks", "refresh_interval", "similarity", "sort")
"""Settings of an index that decide results, or that building needs for itself."""


class SearchFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file.

    index: settings of the indexes that cotrail creates, by their dotted names without `index.`.
    corpora: existing indexes by the names of their corpora.
    """

    index: dict[str, Any] = {}
    corpora: dict[str, ExistingIndex] = {}


def read_search_file(path: Path) -> SearchFile:
    """The file's content, empty for a missing file; raises InputError where it is malformed."""
    what = "the search settings"
    try:
        document = read_toml(path, what)
    except FileNotFoundError:
        return SearchFile()
    except OSError as error:
        raise InputError(f"{what} {path} can't be read ({error.strerror}); check the path") from error
    try:
        search_file = msgspec.convert(document, SearchFile)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{what} {path} are malformed: {refusal(error, SearchFile, document)}; correct them"
        ) from error
    # TOML reads dotted names as nested tables.
    settings = {name.removeprefix("index."): value for name, value in dotted(search_file.index)}
    for name in settings:
        if name.startswith(RESERVED_SETTINGS):
            raise InputError(f"{what} {path} can't set {name}: cotrail sets it itself; take it out")
    return SearchFile(settings, {checked_name(name): index for name, index in search_file.corpora.items()})
