"""Transcripts of other programs in the forms that these write: questions with what was said about each.

JSON Lines or a JSON list of messages as OpenAI's API has them, or of outputs in which searches stand between tags
(Search-R1, ReSearch, Search-o1); and logs of Inspect (`.eval`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import msgspec
from msgspec import Struct, ValidationError

from cotrail.common.printable_text import storable_json
from cotrail.core.calls import Call
from cotrail.core.questions import GoldParagraph, Question
from cotrail.engines.retrieval.tool_texts import paragraphs_in
from cotrail.errors import InputError
from cotrail.systems.imported import Message, Transcript

MOST_BYTES = 2**26
"""The size of a question's record at most, unpacked too."""

Json = Mapping[str, Any]
_SAMPLE = re.compile(r"samples/[^/]+\.json")


class _Call(Struct):
    """A call of a tool: OpenAI's form has a function, Inspect's its name."""

    id: str = ""
    function: Any = ""
    arguments: Any = "{}"


class _Message(Struct):
    role: str
    content: Any = ""
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Record(Struct):
    """A question, by the names that files have for its parts."""

    id: str | int | None = None
    question_id: str | int | None = None
    question: str | None = None
    answers: list[str] | str | None = None
    golden_answers: list[str] | str | None = None
    gold_answers: list[str] | str | None = None
    messages: list[_Message] | None = None
    output: Any = None
    answer: str | None = None
    gold: list[GoldParagraph] = []


def read_transcripts(path: Path) -> Iterator[Question]:
    """The questions of a file, each with its transcript as evidence; raises InputError with the place of a bad one."""
    seen = set[str]()
    for place, raw in enumerate(_records(path), start=1):
        try:
            question = _question(msgspec.convert(raw, _Record), str(place))
        except (ValidationError, ValueError) as error:
            raise InputError(f"{path}, record {place}: {error}; correct it, or leave it out") from error
        if question.id in seen:
            raise InputError(f"{path}, record {place}: the id {question.id!r} is there twice; give each its own")
        seen.add(question.id)
        yield question
    if not seen:
        raise InputError(f"{path} has no transcripts")


def _records(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
            file.seek(0)
            if beginning == b"PK\x03\x04":
                yield from _inspect_samples(path)
            elif beginning.lstrip()[:1] == b"[":
                yield from _decoded(path, 1, file.read(), list[Any])
            else:
                lines = iter(lambda: file.readline(MOST_BYTES + 1), b"")
                yield from (_decoded(path, place, line) for place, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def _decoded(path: Path, place: int, line: bytes, type_: Any = Any) -> Any:
    if len(line) > MOST_BYTES and type_ is Any:
        raise InputError(f"{path}, record {place} has more than {MOST_BYTES >> 20} MiB; leave it out")
    try:
        return msgspec.json.decode(storable_json(line.decode("utf-8-sig")), type=type_)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}, record {place} is no JSON in UTF-8 ({error}); was the file cut off?") from error


def _inspect_samples(path: Path) -> Iterator[Json]:
    """The samples of a log of Inspect, of which one question may have several (epochs)."""
    try:
        with ZipFile(path) as log:
            names = [each for each in log.infolist() if _SAMPLE.fullmatch(each.filename)]
            for place, member in enumerate(names, start=1):
                with log.open(member) as opened:
                    sample = _decoded(path, place, opened.read(MOST_BYTES + 1))
                epoch = sample.get("epoch", 1)
                target = sample.get("target")
                yield {
                    "id": sample.get("id") if epoch == 1 else f"{sample.get('id')}#{epoch}",
                    "question": sample["input"] if isinstance(sample.get("input"), str) else None,
                    "answers": [target] if isinstance(target, str) else target,
                    "messages": sample.get("messages"),
                    "answer": None if sample.get("error") is None else "",
                }
    except (BadZipFile, EOFError, NotImplementedError, AttributeError) as error:
        raise InputError(f"{path} is no whole log of Inspect ({error}); was it cut off?") from error


def _question(record: _Record, place: str) -> Question:
    """The question of a record; raises ValueError where it has no transcript."""
    output = (
        record.output.get("output") or record.output.get("final_response")
        if isinstance(record.output, dict)
        else record.output
    )
    if record.messages:
        messages = _of_chat(record.messages)
    elif isinstance(output, str):
        messages = _of_tags(output)
    elif record.answer is not None and record.question:
        messages = [Message(role="user", content=record.question)]
    else:
        raise ValueError("it has neither `messages` nor an `output`, nor an `answer` to its `question`")
    asked = next((each.content for each in messages if each.role == "user"), "")
    text = record.question or asked
    if not text.strip():
        raise ValueError("it has no `question`, and no message of the user's")
    if messages[0].role == "assistant":
        messages = [Message(role="user", content=text), *messages]
    named = (record.answers, record.golden_answers, record.gold_answers)
    published = next((each for each in named if each is not None), ())
    key = record.id if record.id is not None else record.question_id
    transcript = Transcript(
        messages=tuple(messages), answer=record.answer if record.answer is not None else _last(messages)
    )
    return Question(
        id=place if key is None else str(key),
        text=text,
        answers=(published,) if isinstance(published, str) else tuple(published),
        gold=tuple(record.gold),
        evidence=(msgspec.json.encode(transcript).decode(),),
    )


def _last(messages: Iterable[Message]) -> str | None:
    """The answer: what stands in the last tag of answers, else the whole of the model's last text."""
    texts = [each.content for each in messages if each.role == "assistant" and each.content.strip()]
    if not texts:
        return None
    _, opened, rest = texts[-1].rpartition("<answer>")
    return rest.partition("</answer>")[0].strip() if opened else texts[-1].strip()


_QUERIES = ("query", "queries", "q", "search_query", "query_list")
"""What arguments of searches are called."""


def _of_chat(given: Iterable[_Message]) -> list[Message]:
    messages, queries = list[Message](), dict[str, str]()
    for each in given:
        role = {"developer": "system", "function": "tool"}.get(each.role, each.role)
        if role not in ("system", "user", "assistant", "tool"):
            raise ValueError(f"a message has the role {each.role!r}")
        content, answers = _text(each.content), each.tool_call_id or ""
        calls = tuple(map(_call, each.tool_calls or ()))
        queries |= {call.id: query for call in calls if (query := _query(call)) is not None}
        query = queries.get(answers) if role == "tool" else None
        found = () if query is None else tuple(paragraphs_in(content))
        messages.append(
            Message(role=role, content=content, calls=calls, answers=answers, query=query, found=found)  # type: ignore[arg-type]
        )
    return messages


def _text(content: Any) -> str:
    """The text of a message, which may be in parts."""
    if isinstance(content, list):
        return "".join(str(each.get("text", "")) for each in content if isinstance(each, dict))
    return content if isinstance(content, str) else ""


def _call(given: _Call) -> Call:
    called = (
        given.function if isinstance(given.function, dict) else {"name": given.function, "arguments": given.arguments}
    )
    arguments = called.get("arguments", "{}")
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Call(name=str(called.get("name", "")), arguments=written, id=given.id)


def _query(call: Call) -> str | None:
    arguments = call.read(dict[str, Any])  # type: ignore[type-var]
    for name in _QUERIES:
        value = (arguments or {}).get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return "\n".join(value)
    return None


_MARK = re.compile(
    r"<(?P<end>/?)(?P<tag>search|query|tool_call|information|result|documents|tool_response)>"
    r"|<\|(?P<side>begin|end)_search_(?P<what>query|result)\|>"
)
_ASKED = frozenset({"search", "query", "tool_call", "query|"})
"""Tags around a query; around what was found are the others. Those of Search-o1 have a bar."""


class _Part(NamedTuple):
    tag: str
    start: int
    end: int
    content: str


def _parts(output: str) -> Iterator[_Part]:
    """What stands between two tags, where it begins and ends with them; a tag that isn't closed is text."""
    opened: dict[str, re.Match[str]] = {}
    for mark in _MARK.finditer(output):
        tag = mark["tag"] or f"{mark['what']}|"
        if not (mark["end"] or mark["side"] == "end"):
            opened.setdefault(tag, mark)
        elif first := opened.get(tag):
            yield _Part(tag, first.start(), mark.end(), output[first.end() : mark.start()])
            opened.clear()


def _of_tags(output: str) -> list[Message]:
    """The texts between what was found, and that with the query that stands last before it."""
    messages, end, query = list[Message](), 0, None
    for part in _parts(output):
        if part.tag in _ASKED:
            query = part.content.strip()
            continue
        text = output[end : part.start]
        messages += [Message(role="assistant", content=text)] if text.strip() else []
        found = () if query is None else tuple(paragraphs_in(part.content))
        messages.append(Message(role="tool", content=output[part.start : part.end], query=query, found=found))
        end, query = part.end, None
    rest = output[end:]
    return messages + ([Message(role="assistant", content=rest)] if rest.strip() or not messages else [])
