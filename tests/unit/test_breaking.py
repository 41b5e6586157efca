"""What of one description of the service is broken in another one, for clients of the first."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from building.breaking import broken
from tests.cases import each_case

PUBLISHED = Path(__file__).parents[2] / "docs" / "openapi.json"

TEXT, NUMBER, WHOLE, NOTHING = ({"type": each} for each in ("string", "number", "integer", "null"))
COMPONENT: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Link"}}}


def record(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def document(sent: Any, answered: Any, *parameters: Any, **further: Any) -> dict[str, Any]:
    """A description of one operation; further: fields of its body."""
    operation = {
        "parameters": list(parameters),
        "requestBody": {"content": {"application/json": {"schema": sent}}, **further},
        "responses": {"200": {"content": {"application/json": {"schema": answered}}}},
    }
    return {
        "paths": {"/x": {"post": operation}},
        "components": {"schemas": {"Link": COMPONENT}, "parameters": {"Key": parameter("key")}},
    }


def sent(old: Any, new: Any) -> list[str]:
    return broken(document(old, {}), document(new, {}))


def answered(old: Any, new: Any) -> list[str]:
    return broken(document({}, old), document({}, new))


def parameter(name: str = "a", *, required: bool = False, schema: Any = TEXT) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}


BROKEN_IN_REQUESTS: tuple[tuple[Any, Any, str], ...] = (
    (record(a=TEXT), record("a", a=TEXT), "`a` of the body is required"),
    (record(a=TEXT), record("b", a=TEXT, b=TEXT), "`b` of the body is required"),
    (record(a=TEXT, b=TEXT), record(a=TEXT), "`b` of the body is gone"),
    (record(a=record(b=TEXT)), record(a=record("b", b=TEXT)), "`b` of `a` of the body is required"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "the body can't be 'b' any more"),
    ({"type": "string"}, {"type": "string", "enum": ["a"]}, "the body can't be 'another value' any more"),
    (NUMBER, TEXT, "the body was number and is string"),
    ({}, TEXT, "the body was anything and is string"),
    ({"anyOf": [TEXT, NOTHING]}, TEXT, "the body can't be null any more"),
    (
        {"type": "array", "items": TEXT},
        {"type": "array", "items": NUMBER},
        "an item of the body was string and is number",
    ),
    (
        {"type": "object", "additionalProperties": record(a=TEXT)},
        {"type": "object", "additionalProperties": record()},
        "`a` of a value of the body is gone",
    ),
)


@each_case(("old", "new", "said"), BROKEN_IN_REQUESTS, ids=lambda each: each if isinstance(each, str) else "")
def test_requests_that_were_taken_and_are_refused_are_named(old: Any, new: Any, said: str) -> None:
    assert sent(old, new) == [f"POST /x: {said}"]
    assert sent(old, old) == sent(new, new) == []


BROKEN_IN_ANSWERS: tuple[tuple[Any, Any, str], ...] = (
    (record(a=TEXT), record(), "`a` of the answer 200 is gone"),
    (record("a", a=TEXT), record(a=TEXT), "`a` of the answer 200 may be missing"),
    (TEXT, {"anyOf": [TEXT, NOTHING]}, "the answer 200 may be null"),
    (TEXT, NUMBER, "the answer 200 was string and is number"),
    (WHOLE, NUMBER, "the answer 200 was integer and is number"),
    (TEXT, {}, "the answer 200 was string and is anything"),
)


@each_case(("old", "new", "said"), BROKEN_IN_ANSWERS, ids=lambda each: each if isinstance(each, str) else "")
def test_answers_that_are_no_longer_what_they_were_are_named(old: Any, new: Any, said: str) -> None:
    assert answered(old, new) == [f"POST /x: {said}"]


def test_what_is_only_added_breaks_nothing() -> None:
    wider = record("a", a={"anyOf": [TEXT, NOTHING]}, b=NUMBER)
    assert sent(record("a", a=TEXT), wider) == []
    assert sent({"enum": ["a"]}, {"enum": ["a", "b"]}) == []
    assert sent(WHOLE, NUMBER) == []
    assert answered(record("a", a=TEXT), record("a", "b", a=TEXT, b=TEXT)) == []
    assert answered(record(a={"anyOf": [TEXT, NOTHING]}), record(a=TEXT)) == []
    told = {"anyOf": [{"$ref": "#/components/schemas/Link"}], "discriminator": {"propertyName": "kind"}}
    assert answered(told, {**told, "anyOf": [*told["anyOf"], NUMBER]}) == []
    old = document(TEXT, TEXT)
    assert broken(old, {**old, "paths": {**old["paths"], "/y": old["paths"]["/x"]}}) == []
    assert broken(old, document(TEXT, TEXT, parameter())) == []


def test_parameters_and_bodies_that_are_required_or_gone_are_named() -> None:
    plain, one = document(TEXT, TEXT), document(TEXT, TEXT, parameter())
    required = "POST /x: the parameter a is required"
    assert broken(plain, document(TEXT, TEXT, parameter(required=True))) == [required]
    assert broken(one, document(TEXT, TEXT, parameter(required=True))) == [required]
    assert broken(one, plain) == ["POST /x: the parameter a is gone"]
    key = document(TEXT, TEXT, {"$ref": "#/components/parameters/Key"})
    assert broken(plain, key) == []
    assert broken(key, plain) == ["POST /x: the parameter key is gone"]
    narrowed = document(TEXT, TEXT, parameter(schema=WHOLE))
    assert broken(one, narrowed) == ["POST /x: the parameter a was string and is integer"]
    assert broken(plain, document(TEXT, TEXT, required=True)) == ["POST /x: the body is required"]


def test_alternatives_are_found_behind_a_reference() -> None:
    old = document({"$ref": "#/components/schemas/Either"}, {})
    new = deepcopy(old)
    old["components"]["schemas"]["Either"] = {"oneOf": [TEXT, NOTHING]}
    new["components"]["schemas"]["Either"] = {"anyOf": [TEXT, NUMBER]}
    assert broken(old, old) == []
    assert broken(old, new) == ["POST /x: the body can't be null any more"]


def test_another_name_of_a_component_breaks_nothing_and_another_content_does() -> None:
    link, other = ({"anyOf": [{"$ref": f"#/components/schemas/{name}"}, NOTHING]} for name in ("Link", "Other"))
    old, new = document(link, link), document(other, other)
    new["components"]["schemas"]["Other"] = COMPONENT
    assert broken(old, new) == []
    new["components"]["schemas"]["Other"] = record(last=TEXT)
    assert broken(old, new) == ["POST /x: `next` of the body is gone", "POST /x: `next` of the answer 200 is gone"]


def test_a_component_that_leads_to_itself_is_compared_once() -> None:
    link = {"$ref": "#/components/schemas/Link"}
    old = document(link, record(a=link, b=link))
    assert broken(old, old) == []
    new = deepcopy(old)
    del new["components"]["schemas"]["Link"]["properties"]["next"]
    assert broken(old, new) == [
        "POST /x: `next` of the body is gone",
        "POST /x: `next` of `a` of the answer 200 is gone",
    ]


SCHEMAS = st.recursive(
    st.sampled_from([TEXT, NUMBER, WHOLE, {}, {"enum": ["a", "b"]}]),
    lambda inner: st.one_of(
        st.builds(lambda of: {"type": "array", "items": of}, inner),
        st.builds(lambda of: {"anyOf": [of, NOTHING]}, inner),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda of: record(*sorted(of)[:1], **of)),
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_a_description_breaks_nothing_of_itself(schema: Any) -> None:
    assert broken(document(schema, schema), document(schema, schema)) == []


@given(SCHEMAS, SCHEMAS)
def test_a_required_field_is_for_requests_what_a_missing_one_is_for_answers(one: Any, other: Any) -> None:
    old, new = record("a", a=one, b=other), record("a", "b", a=one, b=other)
    assert sent(old, new) == ["POST /x: `b` of the body is required"]
    assert answered(new, old) == ["POST /x: `b` of the answer 200 may be missing"]
    assert sent(new, old) == answered(old, new) == []


def test_every_route_that_is_taken_away_is_named_and_the_command_fails(tmp_path: Path) -> None:
    published = msgspec.json.decode(PUBLISHED.read_bytes())
    assert broken(published, published) == []
    fewer = published | {"paths": {}}
    routes = {f"{method.upper()} {path}: it is gone" for path, each in published["paths"].items() for method in each}
    assert set(broken(published, fewer)) == routes
    (tmp_path / "fewer.json").write_bytes(msgspec.json.encode(fewer))
    command = [sys.executable, "-m", "building.breaking", "-", str(PUBLISHED)]
    same = subprocess.run(command, input=PUBLISHED.read_bytes(), capture_output=True, check=True)
    assert same.stdout == b""
    less = subprocess.run([*command[:-2], str(PUBLISHED), str(tmp_path / "fewer.json")], capture_output=True, text=True)
    assert (less.returncode, set(less.stdout.splitlines())) == (1, routes)
