"""Structured output: the fields by which a server holds a model to a schema or to several words."""

from typing import Any

import msgspec

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.served.tokenizer import Dialect


def structure_fields(dialect: Dialect, request: GenerationRequest) -> dict[str, Any]:
    """The fields for what the request asks for; empty where the server promises nothing of the kind."""
    if request.choices:
        return _choice_fields(dialect, request.choices)
    if not request.schema:
        return {}
    schema = msgspec.json.decode(request.schema)
    if dialect == "llama.cpp":
        return {"json_schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema_format(schema)}}


def json_schema_format(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema under the name that OpenAI's APIs want, held to strictly where it is of the form that they take so."""
    return {"name": "answer", "schema": schema, "strict": _is_strict(schema)}


def _choice_fields(dialect: Dialect, choices: tuple[str, ...]) -> dict[str, Any]:
    if dialect == "vllm":
        return {"structured_outputs": {"choice": list(choices)}}
    if dialect == "llama.cpp":
        words = " | ".join(msgspec.json.encode(each).decode() for each in choices)
        return {"grammar": f"root ::= {words}"}
    return {}


def _is_strict(schema: Any) -> bool:
    """Return whether each object in a schema has all its properties and no others, as OpenAI's strict mode requires."""
    match schema:
        case dict():
            if schema.get("type") == "object" or "properties" in schema:
                properties = schema.get("properties", {})
                if schema.get("additionalProperties") is not False:
                    return False
                if set(properties) != set(schema.get("required", ())):
                    return False
            return all(map(_is_strict, schema.values()))
        case list():
            return all(map(_is_strict, schema))
    return True
