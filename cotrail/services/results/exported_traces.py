"""A run as traces of other programs: a log of Inspect, and spans of OpenTelemetry."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec

from cotrail import __version__
from cotrail.core.actions.embed import EMBED, RATE
from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.calls import Call
from cotrail.core.prompts import Text, Turn
from cotrail.core.results import Failure, Generated
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.results.exporting import Pieces, Source, StepTrace, json_line, main_scores, times_of, trace
from cotrail.services.results.training_data import Message, prompt_messages, written_message

Json = dict[str, Any]

# A log of Inspect (inspect_ai.log, version 2): a ZIP file of JSON, in which a question is a sample.


def inspect_log(source: Source) -> Iterator[bytes]:
    """The log. Samples' summaries stand behind them all, and are in a temporary file until then.

    Members have no time of their own (`ZipInfo`), so a second log is the same.
    """
    pieces, counts, totals = Pieces(), dict[str, int](), dict[str, float]()
    start, samples = {"version": 2, "eval": _spec(source.record), "plan": {}}, 0
    with ZipFile(pieces, "w") as log, TemporaryFile() as summaries:
        log.writestr(ZipInfo("_journal/start.json"), msgspec.json.encode(start), ZIP_DEFLATED)
        for samples, question in enumerate(source.questions, start=1):
            sample = _sample(source.record, question)
            log.writestr(ZipInfo(f"samples/{question.key}_epoch_1.json"), msgspec.json.encode(sample), ZIP_DEFLATED)
            summaries.write((b"," if samples > 1 else b"[") + msgspec.json.encode(_summary(sample)))
            for name, score in sample["scores"].items():
                counts[name] = counts.get(name, 0) + 1
                totals[name] = totals.get(name, 0.0) + score["value"]
            yield pieces.take()
        summaries.write(b"]" if samples else b"[]")
        summaries.seek(0)
        listed = ZipInfo("summaries.json")
        listed.compress_type = ZIP_DEFLATED
        with log.open(listed, "w", force_zip64=True) as member:
            while some := summaries.read(2**20):
                member.write(some)
                yield pieces.take()
        means = {name: {"mean": {"name": "mean", "value": totals[name] / counts[name]}} for name in totals}
        scores = [{"name": name, "scorer": name, "metrics": mean} for name, mean in means.items()]
        results = {"total_samples": source.record.size, "completed_samples": samples, "scores": scores}
        ended = {"status": "success" if source.record.digest else "started", "results": results}
        log.writestr(ZipInfo("header.json"), msgspec.json.encode(start | ended), ZIP_DEFLATED)
    yield pieces.take()


def _spec(record: RunRecord) -> Json:
    return {
        **dict.fromkeys(("eval_id", "run_id", "task_id"), record.id),
        "created": record.created_at,
        "task": record.system,
        "task_version": record.system_version,
        "task_args": record.settings,
        "dataset": {"name": record.dataset, "samples": record.size},
        "model": record.model_name,
        "model_generate_config": {"temperature": record.temperature, "seed": record.seed},
        "config": {},
        "packages": {"cotrail": __version__},
        "metadata": {"model": record.model, "corpus": record.corpus_revision, "digest": record.digest},
    }


def _sample(record: RunRecord, question: TracedQuestion) -> Json:
    begun, ended = times_of(record, *question.steps)
    pool, said = dict[bytes, int](), question.reason and _said(question.reason)
    shown, rated = trace(record, question).steps, main_scores(record, question).items()
    answer = [] if question.answer is None else [{"role": "assistant", "content": question.answer}]
    used = _used(each.result for each in question.steps if isinstance(each.result, Generated))
    return {
        "id": question.key,
        "epoch": 1,
        "input": question.text,
        "target": question.answers,
        "messages": [{"role": "user", "content": question.text}, *answer],
        "output": {"model": record.model_name, "choices": [{"message": each} for each in answer]},
        "scores": {name: {"value": score, "answer": question.answer} for name, score in rated},
        "metadata": {"status": question.status, "ended_by": question.ended_by, "kinds": question.kinds},
        "events": [_event(record, *each, pool) for each in zip(question.steps, shown, strict=True)],
        "events_data": {"messages": [*map(msgspec.Raw, pool)], "calls": []},
        "model_usage": {record.model_name: used} if used["total_tokens"] else {},
        "started_at": begun,
        "completed_at": ended,
        "total_time": (ended - begun).total_seconds(),
        "error": said and {"message": said, "traceback": said, "traceback_ansi": said},
    }


_LONG = ("messages", "output", "events", "events_data")


def _summary(sample: Json) -> Json:
    """What a list of samples shows."""
    less = {name: value for name, value in sample.items() if name not in _LONG}
    ended, error = sample["metadata"]["status"] != QuestionStatus.OPEN, sample["error"]
    return less | {"error": error and error["message"], "completed": ended, "message_count": len(sample["messages"])}


def _used(results: Iterable[Generated]) -> Json:
    counts = [(each.prompt_tokens, each.generated_tokens, each.cached_prompt_tokens) for each in results]
    read, written, cached = map(sum, zip(*counts, strict=True)) if counts else (0, 0, 0)
    tokens = {"input_tokens": read, "output_tokens": written, "input_tokens_cache_read": cached}
    return tokens | {"total_tokens": read + written}


def _places(pool: dict[bytes, int], messages: Iterable[Json]) -> Iterator[tuple[int, int]]:
    """Where messages stand among those of the sample, each of which is there once: conversations repeat them."""
    for message in map(msgspec.json.encode, messages):
        place = pool.setdefault(message, len(pool))
        yield place, place + 1


def _event(record: RunRecord, step: TracedStep, shown: StepTrace, pool: dict[bytes, int]) -> Json:
    """A step: a request to the model, a call of a search as a tool, or all that is known of it."""
    begun, ended = times_of(record, step)
    metadata = {"step": step.sequence, "kind": step.kind, "state": step.state}
    event = {"timestamp": begun, "completed": ended, "working_start": 0.0, "metadata": metadata}
    action = step.carried_out
    if isinstance(action, Prompted) and isinstance(step.result, Generated):
        reason = "max_tokens" if step.result.ended == "length" else "stop"
        message = _message(Turn(role="assistant", pieces=(Text(step.result.text),), calls=step.result.calls))
        return event | {
            "event": "model",
            "model": record.model_name,
            "input": [],
            "input_refs": [*_places(pool, map(_message, seen_prompt(action, step.result).turns))],
            "tools": [],
            "tool_choice": "auto",
            "config": {"max_tokens": action.max_tokens, "stop_seqs": action.stop},
            "output": {
                "model": record.model_name,
                "choices": [{"message": message, "stop_reason": reason}],
                "usage": _used([step.result]),
            },
        }
    if step.query is None:
        return event | {"event": "info", "source": step.kind, "data": shown}
    texts = (f"[{each.rank}] {each.paragraph.title}\n{each.paragraph.text}" for each in step.hits)
    hits = [{"id": each.paragraph.id, "rank": each.rank, "score": each.score} for each in step.hits]
    return event | {
        "event": "tool",
        "id": str(step.sequence),
        "function": step.kind,
        "arguments": {"query": step.query},
        "result": "\n\n".join(texts),
        "error": step.failure and {"type": "unknown", "message": _said(step.failure)},
        "metadata": metadata | {"hits": hits},
    }


def _said(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}"


def _message(turn: Turn) -> Json:
    """A turn as Inspect has it; plain text, which no one speaks, is the user's."""
    calls = [{"id": each.id, "function": each.name, "arguments": _arguments(each)} for each in turn.calls]
    message = {"role": turn.role or "user", "content": turn.text}
    return message | ({"tool_calls": calls} if calls else {}) | ({"tool_call_id": turn.answers} if turn.answers else {})


def _arguments(call: Call) -> Json:
    """The arguments of a call; the text where it is no JSON object."""
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {"text": call.arguments}


# A run as traces of OpenTelemetry, in the JSON of its protocol (OTLP 1.5): a line a question, made from the record.
#
# Attributes have the names of OpenInference and of OpenTelemetry's conventions for generative AI. Ids are digests, so a
# second export is the same.

Attributes = Mapping[str, Any]

SPAN_KINDS = {EMBED.name: "EMBEDDING", RATE.name: "RERANKER"}
"""OpenInference's names of kinds of steps, apart from generations and searches; any other is a `CHAIN`."""

INTERNAL, CLIENT, FAILED = 1, 3, 2
"""SPAN_KIND_INTERNAL, SPAN_KIND_CLIENT and STATUS_CODE_ERROR of OTLP."""


def traces(source: Source) -> Iterator[bytes]:
    """A trace for each question: a span of the whole, and beneath it one for each step."""
    resource = {"attributes": _attributes({"service.name": "cotrail", "openinference.project.name": source.record.id})}
    for question in source.questions:
        spans = {"scope": {"name": "cotrail", "version": __version__}, "spans": [*_spans(source.record, question)]}
        yield json_line({"resourceSpans": [{"resource": resource, "scopeSpans": [spans]}]})


def _spans(record: RunRecord, question: TracedQuestion) -> Iterator[Json]:
    trace, root = _id(32, record.id, question.key), _id(16, record.id, question.key, "question")
    whole = {
        "traceId": trace,
        "spanId": root,
        "name": f"invoke_agent {record.system}",
        "kind": INTERNAL,
        **_ended(record, question.steps, question.reason),
        "attributes": _attributes(_of_question(record, question)),
    }
    yield whole
    for step in question.steps:
        kind, name, attributes = _of_step(record, step)
        facts = {"step": step.sequence, "state": step.state, "attempts": step.attempts, "worker": step.worker}
        common = {"openinference.span.kind": kind, "gen_ai.conversation.id": question.key, "metadata": _text(facts)}
        yield {
            "traceId": trace,
            "spanId": _id(16, record.id, question.key, str(step.sequence)),
            "parentSpanId": root,
            "name": name,
            "kind": CLIENT if kind == "LLM" else INTERNAL,
            **_ended(record, [step], step.failure),
            "attributes": _attributes(common | dict(attributes)),
        }


def _ended(record: RunRecord, steps: Iterable[TracedStep], failure: Failure | None) -> Json:
    begun, ended = times_of(record, *steps)
    said = {"code": FAILED, "message": _said(failure)} if failure else {}
    return {"startTimeUnixNano": _nanoseconds(begun), "endTimeUnixNano": _nanoseconds(ended), "status": said}


def _of_question(record: RunRecord, question: TracedQuestion) -> Attributes:
    facts = {"run": record.id, "status": question.status, "ended_by": question.ended_by, "gold": question.answers}
    return {
        "openinference.span.kind": "AGENT",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": record.system,
        "gen_ai.conversation.id": question.key,
        "session.id": f"{record.id}/{question.key}",
        "input.value": question.text,
        "output.value": question.answer,
        "metadata": _text(facts | {"scores": main_scores(record, question), "kinds": question.kinds}),
    }


def _of_step(record: RunRecord, step: TracedStep) -> tuple[str, str, Attributes]:
    """The kind of its span by OpenInference, its name, and what is said of it."""
    action = step.carried_out
    if isinstance(action, Prompted) and isinstance(step.result, Generated):
        read = prompt_messages(seen_prompt(action, step.result))
        return "LLM", f"chat {record.model_name}", _of_generation(record, step.result, read)
    if step.query is not None:
        return "RETRIEVER", f"retrieval {step.kind}", dict(_of_search(step, step.query))
    result = None if step.result is None else _text(step.result)
    values = {"input.value": _text(step.action), "input.mime_type": "application/json", "output.value": result}
    return SPAN_KINDS.get(step.kind, "CHAIN"), step.kind, values


def _of_generation(record: RunRecord, result: Generated, read: list[Message]) -> Attributes:
    total = result.prompt_tokens + result.generated_tokens
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": record.model_name,
        "gen_ai.response.model": result.served_by or record.model,
        "gen_ai.response.finish_reasons": [result.ended or "stop"],
        "gen_ai.usage.input_tokens": result.prompt_tokens,
        "gen_ai.usage.output_tokens": result.generated_tokens,
        "gen_ai.usage.cache_read.input_tokens": result.cached_prompt_tokens,
        "llm.model_name": record.model_name,
        "llm.token_count.prompt": result.prompt_tokens,
        "llm.token_count.completion": result.generated_tokens,
        "llm.token_count.total": total,
        "llm.token_count.prompt_details.cache_read": result.cached_prompt_tokens,
        "input.value": "\n\n".join(each["content"] for each in read),
        "output.value": result.text,
        **_messages("llm.input_messages", read),
        **_messages("llm.output_messages", [written_message(result)]),
    }


def _messages(name: str, messages: Iterable[Message]) -> Json:
    """Messages as OpenInference has them: an attribute for each field of each."""
    said: Json = {}
    for place, message in enumerate(messages):
        said |= {f"{name}.{place}.message.{each}": message[each] for each in ("role", "content")}
        for number, call in enumerate(message.get("tool_calls", ())):
            beginning = f"{name}.{place}.message.tool_calls.{number}.tool_call"
            said |= {f"{beginning}.function.{each}": call["function"][each] for each in ("name", "arguments")}
            said[f"{beginning}.id"] = call["id"]
    return said


def _of_search(step: TracedStep, query: str) -> Iterator[tuple[str, Any]]:
    yield from {"gen_ai.operation.name": "retrieval", "input.value": query}.items()
    for place, hit in enumerate(step.hits):
        found = {"id": hit.paragraph.id, "content": hit.paragraph.text, "score": hit.score}
        found["metadata"] = _text({"title": hit.paragraph.title, "rank": hit.rank, "lists": hit.lists})
        yield from ((f"retrieval.documents.{place}.document.{name}", value) for name, value in found.items())


def _attributes(values: Attributes) -> list[Json]:
    """Attributes in the protocol's form; those without a value are left out."""
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Any) -> Json:
    match value:
        case list():
            return {"arrayValue": {"values": [*map(_value, value)]}}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
    return {"stringValue": str(value)}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _id(digits: int, *names: str) -> str:
    """An id of so many hexadecimal digits."""
    return sha256(msgspec.json.encode(names)).hexdigest()[:digits]


def _nanoseconds(moment: datetime) -> str:
    """Since 1970, exactly."""
    return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000)
