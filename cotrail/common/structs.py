"""Records and settings by their fields: trees, dotted names, values set in text, unusual values, meanings."""

import ast
import inspect
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.errors import InputError


def common_fields(record: Any, of: type[Struct]) -> dict[str, Any]:
    """The values of the fields that records of this type have, by name."""
    return {name: getattr(record, name) for name in of.__struct_fields__}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both trees in one, `over` winning."""
    tree = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(tree.get(key), dict)
        tree[key] = merged(tree[key], value) if both else value
    return tree


def dotted(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values that aren't dictionaries, with their dotted names."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of values that have dotted names."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *above, last = name.split(".")
        place = tree
        for each in above:
            place = place.setdefault(each, {})
        place[last] = value
    return tree


def assigned(arguments: Iterable[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Values from `KEY=VALUE`; a value is read as JSON, and taken as text where it isn't any or belongs to `texts`."""
    values: dict[str, Any] = {}
    for each in arguments:
        key, equals, text = each.partition("=")
        if not equals:
            raise InputError(f"{each!r} sets nothing: write KEY=VALUE")
        values[key] = text if key in texts else _value(text)
    return values


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def unusual(value: Struct, *names: str) -> dict[str, Any]:
    """Those of the fields that aren't at their defaults; fields that the value lacks are left out.

    What most steps leave at its default takes no room in requests and fingerprints this way.
    """
    unusual = {}
    for name, default in _defaults(type(value), names):
        if (given := getattr(value, name)) != default:
            unusual[name] = given
    return unusual


def without_unused(value: Struct, *seldom: str) -> dict[str, Any]:
    """The value as JSON; of the fields that are seldom set, only those that aren't at their defaults."""
    unused = set(seldom).difference(unusual(value, *seldom))
    return {name: written for name, written in msgspec.to_builtins(value).items() if name not in unused}


@cache
def _defaults(of: type[Struct], names: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
    defaults = {field.name: _default(field) for field in msgspec.structs.fields(of)}
    return tuple((name, defaults[name]) for name in names if name in defaults)


def _default(field: msgspec.structs.FieldInfo) -> object:
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def field_meanings(of: type) -> dict[str, str]:
    """The meanings by field, of the class and those that it derives from; fields without one are left out.

    A class whose source can't be read, such as one typed at a prompt, has none.
    """
    meanings: dict[str, str] = {}
    for cls in reversed(of.__mro__):
        if issubclass(cls, Struct | Enum) and cls not in (Struct, Enum):
            meanings |= _classes_of(cls.__module__).get(cls.__qualname__, {})
    return meanings


@cache
def _classes_of(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {node.name: dict(_documented(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(cls.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split()).removesuffix(".")


def canonical(value: object) -> bytes:
    """Encode a value as JSON with sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


# Digests shortened for people. Recorded and compared digests are always complete.

_DIGEST = re.compile(r"\b([0-9a-f]{12})(?:[0-9a-f]{52}|[0-9a-f]{28})\b")
"""A SHA-256, or Git's SHA-1."""


def shortened(text: str) -> str:
    """Shorten each digest in the text to twelve digits: enough for people to recognise it."""
    return _DIGEST.sub(r"\1", text)
