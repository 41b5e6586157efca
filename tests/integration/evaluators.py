"""What programs that evaluate models send to servers of OpenAI's API, as they sent it: docs/openai-api.md."""

from typing import Any

_TEXT = [{"type": "input_text", "text": "QUESTION"}]
_ASKED = [{"role": "user", "content": "QUESTION"}]
_SHOTS = [
    {"role": "system", "content": "Answer briefly."},
    {"role": "user", "content": "At which ground do the first winners of the Marrel Cup play?"},
    {"role": "assistant", "content": "Carrow End"},
]
_SAID = [
    {"role": "user", "content": "What condition afflicted the designer of the Durrow Viaduct?"},
    {"role": "assistant", "content": "\nvertigo", "reasoning_content": "So the answer is: vertigo.\nvertigo\n"},
]
_ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Who?"}]},
    {"type": "reasoning", "content": [], "summary": [], "encrypted_content": None, "id": "rs_ircot-20261126-7269d036"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "vertigo", "annotations": [], "logprobs": []}],
        "status": "completed",
        "id": "msg_ircot-20261126-7269d036",
    },
]
_OPTIONS = {"max_tokens": 100, "reasoning_effort": "low", "seed": 1, "stop": ["x"], "temperature": 0.0, "top_p": 0.9}
_OF_INSPECT = {"include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}, "store": False}
_OF_HARNESS = {"max_tokens": 64, "temperature": 0, "stop": ["\n\n"], "seed": 1234}

COMPLETIONS: dict[str, dict[str, Any]] = {
    "inspect": {"messages": _ASKED},
    "inspect with options": {"messages": [_SHOTS[0], *_ASKED], **_OPTIONS},
    "inspect after a turn": {"messages": [*_SAID, *_ASKED]},
    "lm-eval": {"messages": _ASKED, **_OF_HARNESS},
    "lm-eval with demonstrations": {"messages": [*_SHOTS, *_ASKED], **_OF_HARNESS},
    "promptfoo": {"messages": _ASKED, "max_tokens": 1024, "temperature": 0},
}
"""Bodies of chat completions without their model, in which QUESTION stands for the question."""

RESPONSES: dict[str, dict[str, Any]] = {
    "inspect": {"input": [{"type": "message", "role": "user", "content": _TEXT}], **_OF_INSPECT},
    "inspect after a turn": {"input": [*_ITEMS, {"type": "message", "role": "user", "content": _TEXT}], **_OF_INSPECT},
    "promptfoo": {
        "input": "QUESTION",
        "max_output_tokens": 1024,
        "temperature": 0,
        "text": {"format": {"type": "text"}},
    },
}
"""The same of responses."""

PROBABILITIES: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": _ASKED, "logprobs": True},
    "responses": {
        "input": "QUESTION",
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "top_logprobs": 2,
    },
}
"""What inspect sends with `--logprobs --top-logprobs 2`, by routes."""
