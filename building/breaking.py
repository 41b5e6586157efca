"""`python -m building.breaking OLD NEW`: what clients of one description of the service find broken in another one.

Both are OpenAPI documents; `-` is the standard input. Exits with 1 where anything is broken.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

Schema = Mapping[str, Any]

Side = Literal["sent", "answered"]
"""Who writes a value: what clients send has to be taken as before, and what they read has to be there as before."""

_PART_OF = {"integer": "number"}
"""Types whose values are of another one too."""


def broken(old: Schema, new: Schema) -> list[str]:
    """What a client of the old description can't rely on any more, a line each."""
    return list(_Comparison(old, new).lines())


class _Comparison:
    """Two documents; a component that both refer to is compared once for each side."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._compared: set[tuple[str, str, Side]] = set()

    def lines(self) -> Iterator[str]:
        for path, methods in self._old["paths"].items():
            for method, old in methods.items():
                new = self._new["paths"].get(path, {}).get(method)
                found = ["it is gone"] if new is None else self._operation(old, new)
                yield from (f"{method.upper()} {path}: {each}" for each in found)

    def _operation(self, old: Schema, new: Schema) -> Iterator[str]:
        yield from self._parameters(old, new)
        yield from self._body(old.get("requestBody", {}), new.get("requestBody", {}))
        for status, answer in old["responses"].items():
            if status not in new["responses"]:
                yield f"the answer {status} is gone"
                continue
            before, now = _resolved(answer, self._old), _resolved(new["responses"][status], self._new)
            yield from self._contents(f"the answer {status}", before, now, "answered")

    def _parameters(self, old: Schema, new: Schema) -> Iterator[str]:
        before, now = _by_name(old, self._old), _by_name(new, self._new)
        for name, parameter in now.items():
            if parameter.get("required") and not before.get(name, {}).get("required"):
                yield f"the parameter {name} is required"
        for name, parameter in before.items():
            if name not in now:
                yield f"the parameter {name} is gone"
            else:
                yield from self._schema(
                    f"the parameter {name}", parameter.get("schema", {}), now[name].get("schema", {}), "sent"
                )

    def _body(self, old: Schema, new: Schema) -> Iterator[str]:
        if new.get("required") and not old.get("required"):
            yield "the body is required"
        yield from self._contents("the body", old, new, "sent")

    def _contents(self, place: str, old: Schema, new: Schema, side: Side) -> Iterator[str]:
        for media_type, content in old.get("content", {}).items():
            if media_type not in new.get("content", {}):
                yield f"{place} is no {media_type}"
                continue
            for key in ("schema", "itemSchema"):
                if key in content:
                    yield from self._schema(place, content[key], new["content"][media_type].get(key, {}), side)

    def _schema(self, place: str, old: Schema, new: Schema, side: Side) -> Iterator[str]:
        before, now = _choices(old), _choices(new)
        _take_as_renamed(before, now)
        if len(before) == len(now) == 1:
            [only], [other] = before.values(), now.values()
            yield from self._choice(place, only, other, side)
            return
        if side == "sent":
            yield from (f"{place} can't be {name} any more" for name in before.keys() - now.keys())
        elif "discriminator" not in new:  # otherwise clients see that they don't know it
            yield from (f"{place} may be {name}" for name in now.keys() - before.keys())
        for name in before.keys() & now.keys():
            yield from self._choice(place, before[name], now[name], side)

    def _choice(self, place: str, old: Schema, new: Schema, side: Side) -> Iterator[str]:
        names = old.get("$ref", ""), new.get("$ref", "")
        if all(names):
            if (*names, side) in self._compared:
                return
            self._compared.add((*names, side))
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        if not {"anyOf", "oneOf"}.isdisjoint((*old, *new)):
            yield from self._schema(place, old, new, side)
            return
        yield from _values(place, old, new, side)
        yield from self._properties(place, old, new, side)
        for key, inside in (("items", "an item of"), ("additionalProperties", "a value of")):
            if isinstance(old.get(key), dict):
                within = new.get(key)
                yield from self._schema(f"{inside} {place}", old[key], within if isinstance(within, dict) else {}, side)

    def _properties(self, place: str, old: Schema, new: Schema, side: Side) -> Iterator[str]:
        before, now = old.get("properties", {}), new.get("properties", {})
        for name, schema in before.items():
            if name in now:
                yield from self._schema(f"`{name}` of {place}", schema, now[name], side)
            else:
                yield f"`{name}` of {place} is gone"
        needed, there = set(new.get("required", ())), set(old.get("required", ()))
        if side == "sent":
            yield from (f"`{name}` of {place} is required" for name in sorted(needed - there))
        else:
            yield from (f"`{name}` of {place} may be missing" for name in sorted((there - needed) & now.keys()))


def _values(place: str, old: Schema, new: Schema, side: Side) -> Iterator[str]:
    """What is broken about types, and about the values that clients may send."""
    written, read = map(_types, (old, new) if side == "sent" else (new, old))
    if read and not (written and all(each in read or _PART_OF.get(each) in read for each in written)):
        yield f"{place} was {_in_words(old)} and is {_in_words(new)}"
    if side == "sent" and (taken := _constants(new)):
        gone = [each for each in _constants(old) or ["another value"] if each not in taken]
        yield from (f"{place} can't be {each!r} any more" for each in gone)


def _types(schema: Schema) -> set[str]:
    """The types of a schema's values; none where they may have any."""
    given = schema.get("type", ())
    return {given} if isinstance(given, str) else set(given)


def _in_words(schema: Schema) -> str:
    return " or ".join(sorted(_types(schema))) or "anything"


def _constants(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _choices(schema: Schema) -> dict[str, Schema]:
    """The alternatives of a schema, by what tells them apart."""
    return {each.get("$ref", _in_words(each)): each for each in schema.get("anyOf", schema.get("oneOf", [schema]))}


def _take_as_renamed(before: dict[str, Schema], now: dict[str, Schema]) -> None:
    """Put the only component that came where the only one went: clients see what is in it, and not its name."""
    went, came = (
        [name for name in one if name.startswith("#") and name not in other]
        for one, other in ((before, now), (now, before))
    )
    if len(went) == len(came) == 1:
        now[went[0]] = now.pop(came[0])


def _by_name(operation: Schema, document: Schema) -> dict[str, Schema]:
    parameters = (_resolved(each, document) for each in operation.get("parameters", ()))
    return {each["name"]: each for each in parameters}


def _resolved(schema: Schema, document: Schema) -> Schema:
    """What a schema or an answer refers to."""
    while "$ref" in schema:
        place: Any = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            place = place[name]
        schema = place
    return schema


def _document(path: str) -> Any:
    return msgspec.json.decode(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())


if __name__ == "__main__":
    lines = broken(*map(_document, sys.argv[1:3]))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit(bool(lines))
