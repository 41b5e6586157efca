"""An index on the server that can be searched."""

from msgspec import Struct

from cotrail.engines.retrieval.existing_index import Fields
from cotrail.engines.retrieval.index_manifest import IndexManifest

SequenceNumbers = dict[str, dict[str, int]]
"""The highest sequence number of each shard, by the UUIDs of indexes and then the shards; deletions have numbers
too."""

FIELDS = Fields(id="id", title="title", text="text", whole_title="title.whole")
"""The fields of an index that cotrail created."""


class Located(Struct, frozen=True, kw_only=True):
    """An index that can be searched, or several under an alias.

    sequence_numbers: those of the last writes; None where the index is read-only.
    """

    name: str
    manifest: IndexManifest
    shards: int
    fields: Fields = FIELDS
    sequence_numbers: SequenceNumbers | None = None
