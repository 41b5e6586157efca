"""Documents of an index as paragraphs."""

from typing import Any

from cotrail.core.paragraphs import Paragraph
from cotrail.engines.retrieval.existing_index import Fields
from cotrail.errors import StepError


def paragraph(id_: str, source: dict[str, Any], fields: Fields) -> Paragraph:
    """The paragraph in a document; a missing title or text is empty. Raises StepError where it has no id."""
    identifier = id_ if fields.id == "_id" else _text(_at(source, fields.id))
    if not identifier:
        raise StepError(f"the document {id_!r} has no {fields.id}; correct search.toml, or the document")
    return Paragraph(id=identifier, title=_text(_at(source, fields.title)), text=_text(_at(source, fields.text)))


def _at(value: Any, path: str) -> Any:
    """The value at a dotted path. Names may contain dots themselves, and a multi-field has the value of its field."""
    if not isinstance(value, dict) or not path:
        return value
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return _at(value.get(first), rest)


def _text(value: Any) -> str:
    """The value as text; several values are joined, as a search treats them."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return "" if value is None else str(value)
