"""Models behind servers as they are today, each with what it refuses and the way in which it thinks."""

from collections.abc import Callable, Iterable
from typing import Any

from cotrail.core.calls import Call
from tests.integration.provider_answers import DIALECTS
from tests.integration.served import Reply, Served, answer, streamed

Body = dict[str, Any]

THOUGHT = "9:40 and 2:15 is 11:55."
TEXT = "11:55"
LETTERS = " I J K"
CAPITAL = '{"capital": "Paris"}'
WEATHER = Call(name="weather", arguments='{"city": "Oslo"}')

VLLM = answer(200, {"tokens": [1, 2, 3], "count": 3})
LLAMA_CPP = answer(200, {"tokens": [1, 2, 3]})


class Pretended(Served):
    """A server that answers by what a request has; behave: the reply to a path and a body."""

    def __init__(self, behave: Callable[[str, Body], Reply]) -> None:
        super().__init__()
        self._behave = behave

    def reply(self, path: str) -> Reply:
        return self.tokenizer if path == "/tokenize" else self._behave(path, self.asked[-1].body)


def unsupported(field: str, advice: str = "") -> Reply:
    """OpenAI's refusal of a field."""
    message = f"Unsupported parameter: '{field}' is not supported with this model.{advice}"
    error = {"message": message, "type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
    return answer(400, {"error": error})


NOT_FOUND = answer(404, {"detail": "Not Found"})


def continues(body: Body) -> bool:
    messages = body.get("messages") or [{"role": "user"}]
    return messages[-1]["role"] in ("assistant", "model")


def written(body: Body) -> tuple[str, list[Call]]:
    """What any of these models writes, besides its thoughts."""
    if body.get("tools"):
        return "", [WEATHER]
    if body.get("response_format") or body.get("json_schema"):
        return CAPITAL, []
    return TEXT, []


def chat(body: Body, fields: Iterable[Body], calls: Iterable[Call] = (), **usage: Any) -> Reply:
    """A chat's answer in the pieces that `fields` are."""
    tools = [
        {"index": place, "id": f"c{place}", "function": {"name": call.name, "arguments": call.arguments}}
        for place, call in enumerate(calls)
    ]
    finish = "tool_calls" if tools else "stop"
    deltas = [*fields, *([{"tool_calls": tools}] if tools else [])]
    scores = {"content": [{"token": TEXT, "logprob": -0.1, "top_logprobs": []}]} if body.get("logprobs") else None
    counts = {"prompt_tokens": 30, "completion_tokens": 12, **usage}
    if not body.get("stream"):
        message: Body = {"role": "assistant", "content": "".join(each.get("content") or "" for each in deltas)}
        message |= {name: value for each in deltas for name, value in each.items() if name != "content"}
        choice = {"message": message, "finish_reason": finish, "logprobs": scores}
        return answer(200, {"choices": [choice], "usage": counts})
    events: list[Any] = [{"choices": [{"delta": each, "finish_reason": None, "logprobs": scores}]} for each in deltas]
    return streamed([*events, {"choices": [{"delta": {}, "finish_reason": finish}], "usage": counts}, "[DONE]"])


def gpt_5(path: str, body: Body) -> Reply:
    """OpenAI's chats of models that think where nobody sees it."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    if "max_tokens" in body:
        return unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    if body.get("logprobs"):
        return answer(403, {"error": {"message": "You are not allowed to request logprobs from this model"}})
    for field in ("temperature", "top_p", "stop"):
        if field in body:
            return unsupported(field)
    text, calls = written(body)
    return chat(body, [{"content": text}], calls, completion_tokens_details={"reasoning_tokens": 9})


def qwen_in_vllm(path: str, body: Body) -> Reply:
    """VLLM with a reasoning parser."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    text, calls = written(body)
    return chat(body, [{"reasoning": THOUGHT}, {"content": text}], calls)


def tags_in_llama_cpp(path: str, body: Body) -> Reply:
    """A server of llama.cpp that leaves the tags in the text."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    if continues(body):
        return answer(400, {"error": {"message": "Assistant response prefill is incompatible with enable_thinking"}})
    text, calls = written(body)
    return chat(body, [{"content": "<think>"}, {"content": f"{THOUGHT}</think>\n\n"}, {"content": text}], calls)


def opened_by_its_template(path: str, body: Body) -> Reply:
    """A model whose template opens the thought, which is longer than short answers allow."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    if body["max_tokens"] < 1000:
        counts = {"prompt_tokens": 30, "completion_tokens": body["max_tokens"]}
        choice = {"delta": {"content": THOUGHT}, "finish_reason": "length"}
        return streamed([{"choices": [choice], "usage": counts}, "[DONE]"])
    text, calls = written(body)
    return chat(body, [{"content": f"{THOUGHT}\n</think>\n\n"}, {"content": text}], calls)


def mistral(path: str, body: Body) -> Reply:
    """Mistral's chats: their thoughts are parts of the content, and fields that they don't know are refused."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    for field in ("seed", "stream_options", "logprobs"):
        if field in body:
            detail = [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}]
            return answer(422, {"object": "error", "message": {"detail": detail}})
    text, calls = written(body)
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]
    return chat(body, [{"content": thinking}, {"content": text}], calls)


def silent(path: str, body: Body) -> Reply:
    """A chat model that doesn't think, of a server without extensions; it goes on where a turn says so."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    if continues(body):
        goes_on = body["messages"][-1].get("prefix")
        return chat(body, [{"content": body["messages"][-1]["content"] + LETTERS if goes_on else TEXT}])
    text, calls = written(body)
    return chat(body, [{"content": text}], calls)


def base(path: str, body: Body) -> Reply:
    """A model that only continues texts, in llama.cpp's server."""
    if path != "/v1/completions":
        return answer(400, {"error": {"message": "this model has no chat template"}})
    if not isinstance(body["prompt"], str):
        return answer(400, {"error": {"message": "bad prompt"}})
    text = CAPITAL if body.get("json_schema") else TEXT
    scores = {"content": [{"token": text, "logprob": -0.1}]} if body.get("logprobs") else None
    counts = {"prompt_tokens": 30, "completion_tokens": 4}
    return streamed(
        [{"choices": [{"text": text, "finish_reason": "stop", "logprobs": scores}], "usage": counts}, "[DONE]"]
    )


def whole_only(path: str, body: Body) -> Reply:
    """A gateway that streams nothing, and says of a bad request only that it is one."""
    if path != "/v1/chat/completions":
        return NOT_FOUND
    if body.get("stream") or "seed" in body:
        return answer(400, {"error": {"message": "bad request"}})
    text, calls = written(body)
    return chat(body, [{"content": text}], calls)


def claude(path: str, body: Body) -> Reply:
    """Anthropic's messages: thinks where it is asked to, and takes one way of sampling."""
    if path != "/v1/messages":
        return NOT_FOUND
    if {"temperature", "top_p"} <= body.keys():
        message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        return anthropic_refusal(message)
    if "thinking" in body and "temperature" in body:
        return anthropic_refusal("`temperature` may only be set to 1 when thinking is enabled.")
    if continues(body):
        return anthropic_refusal("This model does not support assistant message prefill.")
    text = CAPITAL if "output_config" in body and "format" in body["output_config"] else TEXT
    calls = [WEATHER] if body.get("tools") else []
    said = {"thought": THOUGHT if "thinking" in body else "", "text": "" if calls else text, "calls": calls}
    events = DIALECTS["anthropic"].streamed(**said)
    if "thinking" not in body:
        events[-2]["usage"] = {"output_tokens": 8}
    return streamed(events)


def anthropic_refusal(message: str) -> Reply:
    return answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def gemini(path: str, body: Body) -> Reply:
    """Gemini's contents: thinks always, and shows it to those who ask."""
    if ":streamGenerateContent" not in path:
        return NOT_FOUND
    config = body["generationConfig"]
    calls = [WEATHER] if body.get("tools") else []
    text = CAPITAL if "responseJsonSchema" in config else TEXT
    shown = config.get("thinkingConfig", {}).get("includeThoughts")
    said = {"thought": THOUGHT if shown else "", "text": "" if calls else text, "calls": calls}
    return streamed(DIALECTS["gemini"].streamed(**said))


def responses(path: str, body: Body) -> Reply:
    """OpenAI's responses of a model that thinks."""
    if path != "/v1/responses":
        return answer(404, {"error": {"message": "This model is only supported in v1/responses."}})
    for field in ("temperature", "top_p"):
        if field in body:
            return unsupported(field)
    text = CAPITAL if "text" in body else TEXT
    calls = [WEATHER] if body.get("tools") else []
    return streamed(DIALECTS["responses"].streamed(text="" if calls else text, calls=calls))
