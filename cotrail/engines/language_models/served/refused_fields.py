"""Fields of requests that a server refuses, and the setting in the model's table that each of them calls for."""

import re
from collections.abc import Mapping
from typing import Any

OMISSIBLE = ("temperature", "top_p", "seed", "stop", "logprobs", "stream", "stream_options")
"""Fields that a table can leave out: those of `Omitted`."""

_LIMIT = 'set limit_field = "max_completion_tokens", or where the number is too large lower thought_tokens,'
_EFFORT = "set another effort, or none,"
_STRUCTURE = 'add "structure" to without'
_OF_EFFORT = ("reasoning_effort", "reasoning.effort", "reasoning", "output_config.effort", "thinking")
_OF_STRUCTURE = ("response_format", "structured_outputs", "json_schema", "text.format", "output_config.format")

_SETTINGS: Mapping[str, str] = {
    **{name: f'add "{name}" to omits' for name in OMISSIBLE},
    "top_logprobs": 'add "logprobs" to omits',
    "stop_sequences": 'add "stop" to omits',
    "max_tokens": _LIMIT,
    "max_completion_tokens": 'set limit_field = "max_tokens"',
    **dict.fromkeys(_OF_EFFORT, _EFFORT),
    "chat_template_kwargs": "correct template",
    **dict.fromkeys(_OF_STRUCTURE, _STRUCTURE),
    "tools": 'add "tools" to without',
}
"""What to do in the model's table about each field that the table decides on."""

_NAMES = "|".join(sorted(map(re.escape, _SETTINGS), key=len, reverse=True))
_NAMED = re.compile(rf"(?:^|[`'\"]|: )({_NAMES})(?=[`'\"]|:|\.?$)|\b(temperature|top_p|(?:top_)?logprobs)\b")
"""A field that a message names: within quotes, before or behind a colon, or by a name that is no word of prose."""

_REFUSES = re.compile(
    r"unsupported|(?:not|n't) (?:support|permitted|allowed|compatible)|deprecated|unrecognized|unknown|unexpected"
    r"|cannot both|only be set",
    re.IGNORECASE,
)


def refused_field(param: str, message: str) -> str:
    """The field of the request that a server refuses, as far as the model's table decides on it; empty otherwise.

    param: what the server says it is about; message: in which the field stands where it doesn't.
    """
    if param:
        return param if param in _SETTINGS else ""
    named = _NAMED.search(message) if _REFUSES.search(message) else None
    return (named[1] or named[2]) if named else ""


def setting_for(field: str) -> str:
    """What to do about a refused field, as an imperative."""
    setting = _SETTINGS.get(field)
    return f"{setting} in its table of the list of models" if setting else "correct its table of the list of models"


def located(content: Any) -> str:
    """The field that an error in FastAPI's form is about; empty where it has another form."""
    while isinstance(content, Mapping):
        content = next((content[name] for name in ("detail", "error", "message") if content.get(name)), None)
    first = content[0] if isinstance(content, list) and content else None
    place = first.get("loc") if isinstance(first, Mapping) else None
    return str(place[1]) if isinstance(place, list) and len(place) > 1 else ""
