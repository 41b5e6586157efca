"""What is wrong with a value in a file, such as a run file or a record in JSON, and what could stand there."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from cotrail.common.declared_types import choices, parts
from cotrail.common.nearest import guess, refused_choice
from cotrail.common.validation import explained

_FIELD = re.compile(r"Object contains unknown field `(?P<field>.*?)`(?: - at `(?P<place>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>.*?)`(?: - at `(?P<place>.*)`)?$")
_CHOICE = re.compile(
    r"Invalid (?:enum )?value (?P<value>'.*'|\S+) - at `(?P<key>key` in `)?(?P<place>.*?)`$", re.DOTALL
)
_PART = re.compile(r"\.([^.\[]+)|\[.*?\]")
_ROOT = re.compile(r"(?<=`)\$\.")


def refusal(error: msgspec.ValidationError, kind: Any, value: object = None) -> str:
    """The error in the words of a person who wrote the keys; an unknown key or choice with all that there are.

    kind: the type that the value should have been; value: the value itself, whose tag chooses among several structs.
    """
    if found := _FIELD.match(str(error)):
        known = _fields(_at(kind, value, found["place"]))
        where = _where(found["place"])
        return f"there is no key `{found['field']}`{where}{guess(found['field'], known)}; there are: {', '.join(known)}"
    found = _CHOICE.match(str(error))
    if found and (known := _choices(kind, value, found["place"], key=found["key"] is not None)):
        return refused_choice(f"`{_plain(found['place'])}`", found["value"].strip("'"), known)
    if found := _MISSING.match(str(error)):
        field, place = found["field"], found["place"] or "$"
        if known := _choices(kind, value, f"{place}.{field}", key=False):
            return f"the key `{field}` is missing; there are: {', '.join(known)}"
        keys = ", ".join(_fields(_at(kind, value, place)))
        return f"the key `{field}`{_where(found['place'])} is missing; the keys are: {keys}"
    return _ROOT.sub("", explained(error, value), count=1)


def _where(place: str | None) -> str:
    return f" in `{_plain(place)}`" if place else ""


def _plain(place: str) -> str:
    return place.removeprefix("$.")


def _choices(kind: Any, value: object, place: str, *, key: bool) -> list[str]:
    parent, _, name = place.rpartition(".")
    if tags := [str(each.tag) for each in _tagged(_at(kind, None, parent)) if each.tag_field == name]:
        return tags
    found = _at(kind, value, place)
    if key:
        found = [part for each in found if isinstance(each, inspect.DictType) for part in parts(each.key_type)]
    return [choice for each in found for choice in choices(each)]


def _fields(found: list[inspect.Type]) -> list[str]:
    structs = (each for each in found if isinstance(each, inspect.StructType))
    return list(dict.fromkeys(field.encode_name for struct in structs for field in struct.fields))


def _at(kind: Any, value: object, place: str | None) -> list[inspect.Type]:
    """The types that a value at this place may have."""
    found = list(parts(inspect.type_info(kind)))
    if isinstance(value, dict):
        found = [each for each in _tagged(found) if value.get(each.tag_field) == each.tag] or found
    for part in _PART.finditer(place or ""):
        found = [inner for each in found for inner in _inside(each, part[1])]
    return found


def _inside(outer: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """The types of a field, or of an entry where there is no name."""
    match outer:
        case inspect.StructType(fields=fields) if name:
            for field in fields:
                if field.encode_name == name:
                    yield from parts(field.type)
        case inspect.DictType(value_type=inner):
            yield from parts(inner)
        case inspect.TupleType(item_types=types):
            for each in types:
                yield from parts(each)
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
            yield from parts(inner)


def _tagged(found: list[inspect.Type]) -> list[inspect.StructType]:
    return [each for each in found if isinstance(each, inspect.StructType) and each.tag_field is not None]
