"""An existing index that others fill, as `search.toml` describes it."""

from msgspec import Struct


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a document that hold the parts of its paragraph.

    title, text: full-text fields. id: a field of type keyword, or `_id`. whole_title: a keyword field of whole titles,
        without which titles can't be looked up. Dots lead into objects and to multi-fields.
    """

    title: str
    text: str
    id: str = "_id"
    whole_title: str | None = None


class ExistingIndex(Fields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An index, or an alias, that others fill and that is searched as a corpus."""

    index: str
