"""A document of an index, read as a paragraph."""

from typing import Any

from cotrail.core.paragraphs import Paragraph
from cotrail.engines.retrieval.existing_index import Fields
from cotrail.errors import StepError


def paragraph(id_: str, source: dict[str, Any], fields: Fields) -> Paragraph:
    """The paragraph in a document; StepError where it has no id. A title or a text that isn't there is empty."""
    found = id_ if fields.id == "_id" else _text(_at(source, fields.id))
    if not found:
        raise StepError(f"the document {id_!r} has no {fields.id}; correct search.toml, or the document")
    return Paragraph(id=found, title=_text(_at(source, fields.title)), text=_text(_at(source, fields.text)))


def _at(value: Any, path: str) -> Any:
    """What stands at a dotted path; names may have dots themselves, and a multi-field is its field."""
    if not isinstance(value, dict) or not path:
        return value
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return _at(value.get(first), rest)


def _text(value: Any) -> str:
    """Several values are one text, as they are for a search."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return "" if value is None else str(value)
