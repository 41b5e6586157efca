"""A language model behind HTTP that writes what a script says, in whatever mood it is (`python -m tests.chaos.model`).

It is asked for continuations of whole prompts and for messages of conversations, as any server is, and finds in the end
of a prompt, or of a conversation's first message, which question it is. What is written already it finds there too.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec

from cotrail.engines.language_models.scripted import CONFIDENCE, Script, ScriptedQuestion
from tests.integration.served import QuietServer, Reply, answer, piece, streamed

SLOW_SECONDS = 1.5
"""Seconds per piece of a slow model; a sentence has a few pieces."""

SILENT_SECONDS = 30.0
"""Seconds for which a silent model sends nothing: longer than an execution may take."""

PIECE_SECONDS = 0.005
"""Seconds per piece of a model that works normally."""

PIECES = 3
"""The number of pieces in which a text is sent."""

Form = Callable[[str, str | None], dict[str, Any]]
"""The event of a piece, and of why the text ends with it."""


class Mood(StrEnum):
    """The model's behaviour. Every mood but the first two fails: a wrong text would count as an answer."""

    OK = "ok"
    SLOW = "slow"
    FAILING = "failing"
    BUSY = "busy"
    GARBAGE = "garbage"
    HALF = "half"
    """The stream breaks off in the middle of a sentence."""

    SILENT = "silent"
    """It accepts a request and sends nothing."""

    GONE = "gone"
    """The connection is closed without an answer."""


def main() -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mood", type=Path, required=True)
    arguments = parser.parse_args()
    script = msgspec.json.decode(arguments.script.read_bytes(), type=Script)
    QuietServer(("127.0.0.1", arguments.port), _handler(script, arguments.mood)).serve_forever()


def continuation(script: Script, prompt: str, *, line: bool) -> str:
    """The script's text for a prompt: the answer if a line is asked for, otherwise the next sentence."""
    asked = prompt[prompt.rindex("\nQ: ") + len("\nQ: ") :]
    question, _, written = asked.partition("\nA:")
    said = script.questions[question]
    return said.answer if line else _next_sentence(said, written.strip())


def _next_sentence(said: ScriptedQuestion, written: str) -> str:
    begun = [" ".join(said.sentences[:count]) for count in range(len(said.sentences))]
    return said.sentences[begun.index(written)] if written in begun else said.conclusion


def message(script: Script, said: Sequence[dict[str, Any]]) -> str:
    """The script's next message of a conversation."""
    asked = said[0]["content"].rpartition("Question")[2].lstrip("]: ").removesuffix("\nAnswer:")
    return script.questions[asked].message(sum(each["role"] == "assistant" for each in said), ())


def _chat_piece(text: str, finish: str | None, *, scored: bool) -> dict[str, Any]:
    scores = {"content": [{"token": text, "logprob": math.log(CONFIDENCE)}]} if scored and text else None
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish, "logprobs": scores}]}


def _reply(mood: Mood, text: str, form: Form) -> Reply:
    match mood:
        case Mood.FAILING:
            return answer(500, {"error": {"message": "out of memory"}})
        case Mood.BUSY:
            return answer(503, {"error": {"message": "loading"}}, {"Retry-After": "0.2"})
        case Mood.GARBAGE:
            return streamed(['{"choices": [{"text": ', "<html>"])
        case Mood.HALF:
            return streamed([*list(_events(text, form, 0))[:2], None])
        case Mood.SILENT:
            time.sleep(SILENT_SECONDS)
        case Mood.GONE:
            return _close
    return streamed(_events(text, form, SLOW_SECONDS if mood is Mood.SLOW else PIECE_SECONDS))


def _events(text: str, form: Form, seconds: float) -> Iterator[object]:
    size = len(text) // PIECES + 1
    for start in range(0, len(text), size):
        time.sleep(seconds)
        yield form(text[start : start + size], None)
    yield form("", "stop")
    yield {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": PIECES}}
    yield "[DONE]"


def _close(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def _handler(script: Script, mood: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            asked = self.rfile.read(length)
            self.close_connection = len(asked) < length  # the client was killed
            if not self.close_connection:
                with suppress(ConnectionError):
                    self.reply(json.loads(asked))(self)

        def reply(self, body: dict[str, Any]) -> Reply:
            now = Mood(mood.read_text())
            match self.path:
                case "/v1/completions":
                    return _reply(now, continuation(script, body["prompt"], line="stop" in body), piece)
                case "/v1/chat/completions":
                    form = partial(_chat_piece, scored="logprobs" in body)
                    return _reply(now, message(script, body["messages"]), form)
            return answer(404, {"detail": "Not Found"})

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the library
            pass

    return Handler


if __name__ == "__main__":
    main()
