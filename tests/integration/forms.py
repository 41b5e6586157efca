"""Forms that models are held to, and schemas that can't be followed."""

import json

from cotrail.core.results import Generated
from cotrail.core.structured_output import Form

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": 12},
            "pages": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 3},
        },
        "required": ["answer", "pages"],
        "additionalProperties": False,
    }
)
WORDS = ("Yes", "No", "Not known")
HARD = {
    "a pattern that it doesn't know": {"type": "string", "pattern": "(?<=a)b"},
    "a schema elsewhere": {"$ref": "http://127.0.0.1:9/schema.json"},
    "a schema of itself alone": {"$ref": "#"},
    "an object within itself": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "nothing that fits": {"allOf": [{"type": "string"}, {"type": "integer"}]},
    "brackets without end": {"type": "string", "pattern": "(" * 20_000 + ")" * 20_000},
    "a pattern of too many states": {"type": "string", "pattern": "^(.*a.{200}.*b.{300}){50}$"},
    "a pattern of too many ways": {"type": "string", "pattern": "^(a?){500}a{500}$"},
    "too many objects": {
        "anyOf": [
            {"properties": {f"k{n}": {"type": "string", "pattern": f"^.{{0,{m}}}x.*$"} for n in range(20)}}
            for m in range(60)
        ]
    },
}
"""Schemas that can't be followed, or not within the library's bounds."""


def follows(result: Generated) -> bool:
    """Return whether the text is JSON of the schema and nothing else."""
    assert isinstance(json.loads(result.text), dict)
    return Form(schema=SCHEMA).fit(result.text)[1] == ""
