"""Runs as logs of Inspect."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from msgspec.structs import replace

from cotrail.core.actions.kind import UnreadAction, UnreadResult
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.results import Failure
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.results.export_formats import FormatName, lines
from cotrail.services.results.exporting import Source, times_of
from tests.unit.made_runs import NAMELESS, OWLS, question, record, search, step, written

RUN = record()
BEGUN = datetime(2026, 1, 2, 3, tzinfo=UTC)
BROKEN = Failure(type="StepError", message="the index\n\x1b[2J is \u202e gone")
UNREAD = replace(written(3, "a"), action=UnreadAction(request={"of": [1]}), result=UnreadResult(result=1))


def timed(asked: TracedQuestion) -> TracedQuestion:
    """The same with steps that took a second each."""
    times = [BEGUN + timedelta(seconds=number) for number in range(len(asked.steps) + 1)]
    steps = [
        replace(each, started_at=begun, finished_at=ended)
        for each, begun, ended in zip(asked.steps, times, times[1:], strict=False)
    ]
    return replace(asked, steps=tuple(steps))


ASKED = (
    timed(question("1", steps=(search(0, OWLS, NAMELESS), written(1, "Owls hunt."), written(2, "yes"), UNREAD))),
    question("a/b c", status="failed", answer=None, reason=BROKEN, steps=(
        step(0, Retrieve(query="broken", count=4), None, state="failed", failure=BROKEN),
    )),
    question("3", status="open", answer=None, steps=(), collected=(), gold=()),
)  # fmt: skip


def file(form: FormatName, questions: Sequence[TracedQuestion] = ASKED) -> bytes:
    return b"".join(lines(Source(record=RUN, questions=questions), form))


def member(log: bytes, name: str) -> Any:
    with ZipFile(BytesIO(log)) as members:
        return json.loads(members.read(name))


def test_a_log_of_inspect_has_a_sample_a_question_and_the_mean_of_each_metric() -> None:
    log = file("inspect")
    with ZipFile(BytesIO(log)) as members:
        assert members.testzip() is None
        names = members.namelist()
    samples = [f"samples/{each.key}_epoch_1.json" for each in ASKED]
    assert names == ["_journal/start.json", *samples, "summaries.json", "header.json"]
    header = member(log, "header.json")
    assert (header["version"], header["status"], header["eval"]["model"]) == (2, "success", "tiny")
    scores = {each["name"]: each["metrics"]["mean"]["value"] for each in header["results"]["scores"]}
    assert scores["answer_em"] == pytest.approx(1 / 3)
    assert [each["completed"] for each in member(log, "summaries.json")] == [True, True, False]
    assert member(log, samples[1])["error"]["message"] == f"StepError: {BROKEN.message}"
    assert member(file("inspect", []), "summaries.json") == []


def test_messages_that_prompts_repeat_are_in_a_log_once() -> None:
    sample = member(file("inspect"), "samples/1_epoch_1.json")
    assert [each["event"] for each in sample["events"]] == ["tool", "model", "model", "info"]
    assert sample["events"][1]["input_refs"] == sample["events"][2]["input_refs"] == [[0, 1]]
    assert sample["events_data"]["messages"] == [{"role": "user", "content": "Do owls hunt?"}]


def test_inspect_reads_its_log(tmp_path: Path) -> None:
    logs = pytest.importorskip("inspect_ai.log")
    path = tmp_path / "run.eval"
    path.write_bytes(file("inspect"))
    log = logs.read_eval_log(str(path))
    assert {each.id for each in log.samples} == {each.key for each in ASKED}
    assert log.samples[0].scores["answer_em"].value == 1.0
    assert log.samples[0].model_usage["tiny"].total_tokens == 50
    [first, *_] = logs.read_eval_log(str(path), resolve_attachments=True).samples
    assert logs.read_eval_log_sample(str(path), "a/b c").error.message.startswith("StepError: the index")
    assert [each.id for each in logs.read_eval_log_sample_summaries(str(path))] == [each.key for each in ASKED]
    model = next(each for each in first.events if each.event == "model")
    assert (model.input[0].text, model.output.completion, model.timestamp) == (
        "Do owls hunt?",
        "Owls hunt.",
        BEGUN + timedelta(seconds=1),
    )


def test_a_second_log_is_the_same_to_the_byte() -> None:
    assert file("inspect") == file("inspect")


def test_a_step_that_was_begun_again_ends_no_sooner_than_it_began() -> None:
    first, again = (replace(search(0), started_at=BEGUN, finished_at=BEGUN + timedelta(seconds=at)) for at in (1, -1))
    assert times_of(RUN, again) == (BEGUN, BEGUN)
    under_way = replace(again, started_at=BEGUN + timedelta(seconds=3))
    assert times_of(RUN, first, under_way) == (BEGUN, BEGUN + timedelta(seconds=3))
    assert times_of(RUN) == (RUN.created_at, RUN.created_at)
