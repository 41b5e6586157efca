"""An index on the server that can be searched, as every search needs to know it."""

from msgspec import Struct

from cotrail.engines.retrieval.existing_index import Fields
from cotrail.engines.retrieval.manifest import IndexManifest

SequenceNumbers = dict[str, dict[str, int]]
"""The highest sequence number of each shard, by the UUIDs of indexes and then the shards; deletions too."""

FIELDS = Fields(id="id", title="title", text="text", whole_title="title.whole")
"""The fields of an index that cotrail made."""


class Located(Struct, frozen=True, kw_only=True):
    """An index, or several under an alias, that can be searched.

    sequence_numbers: those of the last writes; None where nothing is written any more.
    """

    name: str
    manifest: IndexManifest
    shards: int
    fields: Fields = FIELDS
    sequence_numbers: SequenceNumbers | None = None
