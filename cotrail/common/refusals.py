"""What is wrong with a value in a file, such as a run file or a record in JSON: its place, and what could stand there.

msgspec says whether a value fits a type, in words of Python's types and without the value. So type and value are
compared here, up to the first place where they differ.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from cotrail.common.nearest import refused_choice, unknown_key
from cotrail.common.printable_text import cut, storable

# What a field takes, in plain words and with an example: `a whole number, 1 or more`, e.g. `4`.
#
# A type that needs more words has them in its `Meta`: `description`, and the first of its `examples`.

_OBJECTS = (inspect.StructType, inspect.DictType)
_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.TupleType)
_EXAMPLES = (4, 1, 0.5)
"""Numbers that are tried as examples, before the bounds themselves."""


def parts(declared: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a type consists of: without its metadata, each of a union."""
    match declared:
        case inspect.Metadata(type=inner):
            yield from parts(inner)
        case inspect.UnionType(types=types):
            for each in types:
                yield from parts(each)
        case _:
            yield declared


def choices(declared: inspect.Type) -> tuple[str, ...]:
    """All values of a literal or an enumeration; none of another type."""
    match declared:
        case inspect.LiteralType(values=values):
            return tuple(str(value) for value in values)
        case inspect.EnumType(cls=members):
            return tuple(str(member.value) for member in members)
    return ()


def fits(declared: inspect.Type, value: Any) -> bool:
    """Return whether a value is of the right kind and within its bounds, whatever is inside it; not for unions."""
    match declared:
        case inspect.AnyType() | inspect.RawType():
            return True
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _in_range(declared, value)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _in_range(declared, value)
        case inspect.LiteralType(values=literals):
            return not isinstance(value, bool | float | list | dict) and value in literals
        case inspect.EnumType(cls=members):
            return value in [member.value for member in members]
        case inspect.StrType(pattern=str(pattern)) if isinstance(value, str) and not re.search(pattern, value):
            return False
    if isinstance(declared, _LISTS):
        return isinstance(value, list | tuple) and _in_length(declared, value)
    return isinstance(value, dict if isinstance(declared, _OBJECTS) else str) and _in_length(declared, value)


def _in_range(declared: inspect.IntType | inspect.FloatType, value: float) -> bool:
    return (
        (declared.ge is None or value >= declared.ge)
        and (declared.gt is None or value > declared.gt)
        and (declared.le is None or value <= declared.le)
        and (declared.lt is None or value < declared.lt)
    )


def _in_length(declared: Any, value: Any) -> bool:
    least, most = _lengths(declared)
    return len(value) >= least and (most is None or len(value) <= most)


def _lengths(declared: Any) -> tuple[int, int | None]:
    return getattr(declared, "min_length", None) or 0, getattr(declared, "max_length", None)


def in_words(declared: inspect.Type) -> str:
    """What may stand there, e.g. `a list of texts` or `text or an object`."""
    if isinstance(declared, inspect.Metadata) and (
        description := (declared.extra_json_schema or {}).get("description")
    ):
        return str(description)
    if isinstance(declared, inspect.UnionType):
        each = (in_words(inner) for inner in declared.types if not isinstance(inner, inspect.NoneType))
        return " or ".join(dict.fromkeys(each))
    return _words(next(parts(declared)))


def _words(declared: Any) -> str:
    match declared:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"a whole number{_range(declared)}"
        case inspect.FloatType():
            return f"a number{_range(declared)}"
        case inspect.LiteralType() | inspect.EnumType():
            return " or ".join(choices(declared))
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
            return f"a list, each entry {in_words(inner)}{_size(declared, 'entry', 'entries')}"
        case inspect.TupleType(item_types=types):
            return f"a list of {len(types)} entries"
        case inspect.StructType() | inspect.DictType():
            return f"an object `{{...}}`{_size(declared, 'key', 'keys')}"
    return f"text in quotation marks{_size(declared, 'character', 'characters')}"


def _range(declared: inspect.IntType | inspect.FloatType) -> str:
    low, high = (None if bound is None else _plain(bound) for bound in (declared.ge, declared.le))
    if low is not None and high is not None:
        return f" from {low} to {high}"
    least = f"above {_plain(declared.gt)}" if declared.gt is not None else f"{low} or more" if low is not None else ""
    most = f"{high} at most" if high is not None else ""
    return "".join(f", {each}" for each in (least, most) if each)


def _plain(bound: float) -> str:
    return f"{int(bound) if bound == int(bound) else bound:,}"


def _size(declared: Any, one: str, many: str) -> str:
    least, most = _lengths(declared)
    if most is not None:
        return f", with {most:,} {many} at most"
    return f", with at least {f'one {one}' if least == 1 else f'{least:,} {many}'}" if least else ""


def example(declared: inspect.Type, value: Any, usual: Any) -> str | None:
    """A value that may stand there, as TOML and JSON write it; made of the refused one where that can be mended.

    usual: the field's default.
    """
    made = (each for each in (*_mended(value), usual, *_examples(declared)) if each and _is_whole(declared, each))
    return next((msgspec.json.encode(each).decode() for each in made), None)


def _is_whole(declared: inspect.Type, value: Any) -> bool:
    for each in parts(declared):
        inner = getattr(each, "item_type", None)
        if fits(each, value) and (inner is None or all(_is_whole(inner, entry) for entry in value)):
            return True
    return False


def _mended(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield value.strip().lower() == "true"
        yield _number(value)
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, int | float):
        yield str(value)
    if not isinstance(value, dict):
        yield [value]


def _examples(declared: inspect.Type) -> Iterator[Any]:
    for each in (declared, *getattr(declared, "types", ())):
        if isinstance(each, inspect.Metadata):
            yield from (each.extra_json_schema or {}).get("examples", ())
    for each in parts(declared):
        bounds = [getattr(each, name, None) for name in ("ge", "le")]
        yield from (*_EXAMPLES, *bounds)


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


LONGEST_VALUE = 80
"""Maximum characters shown of a value."""

_CREDENTIALS = re.compile(r"://[^/\s\"]*@")


def shown(value: object) -> str:
    """The value as JSON on one line, cut where it is long, without the credentials in addresses."""
    if isinstance(value, float):
        return repr(value)  # JSON has neither infinity nor NaN
    if isinstance(value, str):
        value = storable(value[: 2 * LONGEST_VALUE])
    json = msgspec.json.encode(value, enc_hook=str).decode()
    return cut(_CREDENTIALS.sub("://[secret]@", json), LONGEST_VALUE)


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
