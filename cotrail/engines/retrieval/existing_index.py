"""An index that others fill, as `search.toml` describes it."""

from msgspec import Struct


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a document has the parts of its paragraph.

    title, text: fields of words. id: a field of type keyword, or `_id`. whole_title: a keyword field of whole titles,
    without which no titles can be looked up. Dots lead into objects and to multi-fields.
    """

    title: str
    text: str
    id: str = "_id"
    whole_title: str | None = None


class ExistingIndex(Fields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An index, or an alias, that somebody else fills and that is searched as a corpus."""

    index: str
