"""Runs as traces of OpenTelemetry, read by the protocol's own messages, and as Parquet, read by pyarrow."""

import base64
import json
from io import BytesIO
from typing import Any

import pyarrow.parquet
import pytest
import yaml
from google.protobuf.json_format import ParseDict
from msgspec.structs import replace
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from cotrail.core.calls import Call
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure, Generated
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.services.results.export_formats import lines
from cotrail.services.results.exporting import Source
from tests.unit.made_runs import NAMELESS, OWLS, question, record, search, written
from tests.unit.test_inspect_logs import ASKED, BEGUN, file

BROKEN = Failure(type="StepError", message="it is gone")
CALL = Call(id="call-1", name="search", arguments='{"query": "owls"}')


def in_base64(message: Any) -> Any:
    """Ids in hexadecimal digits, as OTLP's JSON has them, in base64, as Protobuf's has bytes."""
    if isinstance(message, list):
        return [in_base64(each) for each in message]
    if not isinstance(message, dict):
        return message
    return {
        name: base64.b64encode(bytes.fromhex(value)).decode()
        if name.endswith(("traceId", "panId"))
        else in_base64(value)
        for name, value in message.items()
    }


def spans(line: bytes) -> list[Any]:
    """The spans of a line, by the protocol's own reader, which refuses unknown fields."""
    [resource] = ParseDict(in_base64(json.loads(line)), TracesData()).resource_spans
    [scope] = resource.scope_spans
    return list(scope.spans)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def exported(*asked: Any) -> list[bytes]:
    return b"".join(lines(Source(record=record(), questions=asked or ASKED), "otlp")).splitlines()


def test_a_question_is_a_trace_with_a_span_for_each_step() -> None:
    whole, found, sentence, answer, unread = spans(exported()[0])
    assert len(whole.trace_id) == 16
    assert len({each.span_id for each in (whole, found, sentence, answer, unread)}) == 5
    assert all(each.parent_span_id == whole.span_id for each in (found, sentence, answer, unread))
    assert whole.start_time_unix_nano == int(BEGUN.timestamp()) * 10**9 == found.start_time_unix_nano
    assert sentence.start_time_unix_nano - found.start_time_unix_nano == 10**9
    kinds = [attributes(each)["openinference.span.kind"] for each in (whole, found, sentence, answer, unread)]
    assert kinds == ["AGENT", "RETRIEVER", "LLM", "LLM", "CHAIN"]
    assert {*kinds} <= {each.value for each in OpenInferenceSpanKindValues}
    assert attributes(whole)["output.value"] == "yes"
    assert json.loads(attributes(whole)["metadata"])["scores"]["answer_em"] == 1
    assert attributes(found)["retrieval.documents.0.document.content"] == OWLS.text
    assert attributes(found)["retrieval.documents.1.document.id"] == NAMELESS.id
    assert attributes(sentence)["llm.input_messages.0.message.role"] == "user"
    assert attributes(sentence)["llm.output_messages.0.message.content"] == "Owls hunt."
    assert attributes(sentence)["gen_ai.usage.input_tokens"] == 20


def test_calls_of_tools_are_in_the_message_that_makes_them() -> None:
    asked = written(0, "I look.")
    assert isinstance(asked.result, Generated)
    _, called = spans(exported(question(steps=(replace(asked, result=replace(asked.result, calls=(CALL,))),)))[0])
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    assert attributes(called)[f"{call}.function.name"] == "search"
    assert attributes(called)[f"{call}.function.arguments"] == CALL.arguments
    assert attributes(called)[f"{call}.id"] == CALL.id


def test_what_failed_and_what_is_open_can_be_seen() -> None:
    _, failed, still_open = exported()
    whole, broken = spans(failed)
    assert (whole.status.code, broken.status.code) == (2, 2)
    assert "gone" in broken.status.message
    [begun] = spans(still_open)
    assert begun.status.code == 0
    assert "output.value" not in attributes(begun)


def test_names_are_those_of_the_conventions() -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")}
    known |= {value for name, value in vars(SpanAttributes).items() if name.isupper()}
    named = {name for line in exported() for span in spans(line) for name in attributes(span)}
    indexed = ("llm.input_messages.", "llm.output_messages.", "retrieval.documents.")
    assert {name for name in named if not name.startswith(indexed)} <= known


def test_a_second_export_has_the_same_ids() -> None:
    assert exported() == exported()


def test_parquet_has_a_row_a_question_and_its_card_what_made_them() -> None:
    table = pyarrow.parquet.read_table(BytesIO(file("parquet")))
    assert table.column("question_id").to_pylist() == ["1", "a/b c", "3"]
    assert table.column("answer").to_pylist() == ["yes", None, None]
    assert table.column("answer_em").to_pylist()[0] == 1
    assert {*METRICS} <= {*table.column_names}
    assert table.column("paragraphs").to_pylist()[0][0]["title"] == OWLS.title
    assert json.loads(table.column("reason").to_pylist()[1])["type"] == BROKEN.type
    assert pyarrow.parquet.read_table(BytesIO(file("parquet", ()))).num_rows == 0
    _, front, card = file("card").decode().split("---\n", 2)
    assert yaml.safe_load(front)["configs"][0]["data_files"] == "**/*.parquet"
    assert record().id in card


def test_what_a_run_saw_is_there_once_and_another_text_of_an_id_has_another_name() -> None:
    later = Paragraph(id=OWLS.id, title=OWLS.title, text="Owls sleep by day.")
    asked = (question("1", steps=(search(0, OWLS, NAMELESS),)), question("2", steps=(search(0, OWLS, later),)))
    lines = [json.loads(line) for line in file("seen", asked).splitlines()]
    assert [(each["id"], each["text"]) for each in lines] == [
        (OWLS.id, OWLS.text),
        (NAMELESS.id, NAMELESS.text),
        (f"{OWLS.id}#2", later.text),
    ]
    assert {each["seen"] for each in lines} == {"2026-01-02"}
    with pytest.raises(InputError, match="has found no paragraphs"):
        file("seen", ())
