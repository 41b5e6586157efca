"""What is wrong with a value in a file, such as a run file or a record in JSON: its place, and what could stand there.

msgspec says whether a value fits a type, in words of Python's types and without the value. So type and value are
compared here, up to the first place where they differ.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from cotrail.common.expected_values import choices, example, fits, in_words, parts
from cotrail.common.nearest import refused_choice, unknown_key
from cotrail.common.validation import shown

_SECRET = re.compile(r"(?<!\w)(?=\w*+$)\w*?(?:key|password|secret|token)(?:_|$)")
"""Ends of places whose values may be secrets, e.g. a key written in place of the name of the variable that holds it."""


def refusal(error: msgspec.ValidationError, kind: Any, value: object = None) -> str:
    """The error in the words of a person who wrote the keys; an unknown key or choice with what there is.

    kind: the type that the value should have been; value: the value itself, as JSON or TOML has it.
    """
    problem = next(_problems(inspect.type_info(kind), value, ""), None)
    if problem is not None:
        return problem
    # A rule of the type's own, such as that two fields exclude each other; msgspec adds the place.
    message, _, place = str(error).partition(" - at `$")
    return f"`{place.strip('.`')}`: {message}" if place.strip(".`") else message


def _problems(declared: inspect.Type, value: Any, place: str, usual: Any = None) -> Iterator[str]:
    """Yield what is wrong with a value and with those inside it; nothing where it fits. usual: the field's default."""
    fitting = [each for each in parts(declared) if fits(each, value)]
    if not fitting:
        yield _unfit(declared, value, place, usual)
    elif isinstance(value, dict) and (tagged := _tagged(fitting)):
        yield from _in_tagged(tagged, value, place)
    else:
        problems = [next(_inside(each, value, place), None) for each in fitting]
        if problems[0] is not None and None not in problems:
            yield problems[0]


def _unfit(declared: inspect.Type, value: Any, place: str, usual: Any) -> str:
    name = f"`{place}`" if place else "this"
    allowed = [choice for each in parts(declared) for choice in choices(each)]
    if allowed and isinstance(value, str | int) and str(value) not in allowed:
        return refused_choice(name, str(value), allowed)
    if _SECRET.search(place):
        return f"{name} must be {in_words(declared)}"
    hint = "" if (shape := example(declared, value, usual)) is None else f", e.g. `{shape}`"
    return f"{name} must be {in_words(declared)}{hint}, not {shown(value)}"


def _in_tagged(structs: Mapping[str, inspect.StructType], value: dict[str, Any], place: str) -> Iterator[str]:
    """What is wrong with a table whose tag says which of several structs it is."""
    key = str(next(iter(structs.values())).tag_field)
    tag = value.get(key)
    if tag is None:
        yield f"the key `{key}`{_within(place)} is missing; there are: {', '.join(structs)}"
    elif not isinstance(tag, str):
        yield f"`{_below(place, key)}` must be {' or '.join(structs)}, not {shown(tag)}"
    elif tag not in structs:
        yield refused_choice(f"`{_below(place, key)}`", tag, structs)
    else:
        yield from _fields(structs[tag], value, place)


def _inside(declared: inspect.Type, value: Any, place: str) -> Iterator[str]:
    """What is wrong inside a value that is itself of the right kind."""
    match declared:
        case inspect.StructType():
            yield from _fields(declared, value, place)
        case inspect.DictType(key_type=keys, value_type=inner):
            for key, each in value.items():
                if not isinstance(keys, inspect.IntType):  # JSON writes numbers as text where they are keys
                    yield from _problems(keys, key, place)
                yield from _problems(inner, each, _below(place, key))
        case inspect.TupleType(item_types=types):
            if len(types) != len(value):
                yield f"`{place}` must have {len(types)} entries, not {len(value)}"
            for number, (inner, each) in enumerate(zip(types, value, strict=False)):
                yield from _problems(inner, each, f"{place}[{number}]")
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
            for number, each in enumerate(value):
                yield from _problems(inner, each, f"{place}[{number}]")


def _fields(struct: inspect.StructType, value: dict[str, Any], place: str) -> Iterator[str]:
    fields = {field.encode_name: field for field in struct.fields}
    if struct.forbid_unknown_fields:
        for key in (key for key in value if key not in fields and key != struct.tag_field):
            yield unknown_key(key, fields, _within(place))
    for name, field in fields.items():
        if name in value:
            yield from _problems(field.type, value[name], _below(place, name), field.default)
        elif field.required:
            yield _missing(field, fields, place)


def _missing(field: inspect.Field, fields: Mapping[str, Any], place: str) -> str:
    allowed = [choice for each in parts(field.type) for choice in choices(each)]
    there = f"there are: {', '.join(allowed)}" if allowed else f"the keys are: {', '.join(fields)}"
    return f"the key `{field.encode_name}`{_within(place)} is missing; {there}"


def _within(place: str) -> str:
    return f" in `{place}`" if place else ""


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _tagged(types: list[inspect.Type]) -> dict[str, inspect.StructType]:
    structs = (each for each in types if isinstance(each, inspect.StructType) and each.tag_field is not None)
    return {str(each.tag): each for each in structs}
