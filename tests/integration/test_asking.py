"""One question, asked while others wait: by the command line, over HTTP, and by OpenAI's own client."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from cotrail.client.transport import RemoteTransport
from cotrail.errors import UnauthenticatedError
from cotrail.services.operations.operation import through
from cotrail.services.runs import following
from tests.conftest import wait_until
from tests.faults.stacked import ROOT, SAMPLE, Cotrail, count, environment_of
from tests.integration.evaluators import COMPLETIONS, PROBABILITIES, RESPONSES
from tests.integration.served import Served, delta, streamed
from tests.leases import Lease

if TYPE_CHECKING:
    from openai import OpenAI

SERVE = """
import sys
import uvicorn
from cotrail.workers import celery_app
uvicorn.run("cotrail.api.app:application", factory=True, port=int(sys.argv[1]))
"""
QUESTION = "Where was the composer of the ballet The Drowned Bell born?"
ANSWER = "Ysborg"
MODELS = """
[models.writer]
engine = "scripted"
path = "{script}"

[models.halting]
engine = "openai"
api = "chat"
url = "{url}"
model = "slow"
context = 4096
revision = "1"
"""
CANCELLED = "SELECT count(*) FROM runs WHERE id = :run AND desired_state = 'cancelled'"


@pytest.fixture(scope="module")
def slow() -> Iterator[Served]:
    """The server of a model that writes as a test tells it."""
    served = Served()
    yield served
    served.close()


@pytest.fixture(scope="module")
def environment(lease: Lease) -> dict[str, str]:
    """That of the commands, in which a model is the default one that knows the sample."""
    return environment_of(lease.home, {"COTRAIL_MODEL": "writer"})


@pytest.fixture(scope="module")
def cotrail(slow: Served, lease: Lease) -> Cotrail:
    lines = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    written = {each["question"]: {"sentences": each["chain"][:-1], "answer": each["answers"][0]} for each in lines}
    failing = {"default": {"answer": "nothing"}, "failures": {"Fail.": {"0": "permanent"}}}
    script = lease.folder / "script.json"
    script.write_text(json.dumps({"name": "writer", "questions": written, **failing}))
    lease.add_models(MODELS.format(script=script, url=slow.url))
    return partial(lease.cotrail, COTRAIL_MODEL="writer")


@pytest.fixture(scope="module")
def url(environment: dict[str, str], cotrail: Cotrail) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], env=environment, cwd=ROOT, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_until(lambda: _listens(port), "the server listens")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def client(url: str) -> "Iterator[OpenAI]":
    from openai import OpenAI

    with OpenAI(base_url=f"{url}/v1", api_key="none") as made:
        yield made


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def events_of(url: str, **request: object) -> list[dict[str, Any]]:
    with httpx2.stream("POST", f"{url}/v1/ask", json=request, timeout=60) as response:
        lines = list(response.iter_lines())
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def test_a_question_is_answered_and_sealed_as_every_other(cotrail: Cotrail) -> None:
    said = cotrail("ask", QUESTION)
    run = said.split("\n", 1)[0]
    assert re.search(rf"^{ANSWER}$", said, re.MULTILINE)
    trace = json.loads(cotrail("trace", run, "1", "--json"))
    assert (trace["question"], trace["answer"], trace["ended_by"]) == (QUESTION, ANSWER, "answer")
    assert "All of it is as it was recorded" in cotrail("audit", "verify", run)


def test_a_server_tells_the_same(cotrail: Cotrail, url: str) -> None:
    here = json.loads(cotrail("ask", QUESTION, "--json"))
    there = json.loads(cotrail("--server", url, "ask", QUESTION, "--json"))
    told = [(each["kind"], each.get("query"), each["state"]) for each in here["steps"]]
    assert told == [(each["kind"], each.get("query"), each["state"]) for each in there["steps"]]
    assert here["answer"] == there["answer"] == ANSWER


def test_what_happens_is_told_in_its_order(url: str) -> None:
    first, *events, answer, end = events_of(url, question=QUESTION)
    assert [first["event"], answer["event"], end["event"]] == ["asked", "answer", "end"]
    steps = [each["step"]["sequence"] for each in events if each["event"] == "step"]
    assert steps == list(range(len(end["trace"]["steps"])))
    for place, each in enumerate(events):
        if each["event"] == "token":
            assert {"event": "step", "sequence": each["step"]} in [
                {"event": later["event"], "sequence": later["step"]["sequence"]}
                for later in events[place:]
                if later["event"] == "step"
            ]
    assert answer["answer"] == ANSWER
    assert answer["usage"]["generated"] == sum(
        each["generated"]["generated_tokens"] for each in end["trace"]["steps"] if "generated" in each
    )


def test_what_a_question_has_no_use_for_is_refused(url: str) -> None:
    for request in ({"question": " "}, {"question": QUESTION, "limit": 2}, {"question": QUESTION, "serving": "batch"}):
        response = httpx2.post(f"{url}/v1/ask", json=request)
        assert response.status_code == 422, request
        assert response.headers["content-type"] == "application/problem+json"
    assert httpx2.post(f"{url}/v1/ask", json={"question": QUESTION, "corpus": "other"}).status_code == 404


def test_text_is_told_while_it_is_written_and_who_hangs_up_cancels(lease: Lease, url: str, slow: Served) -> None:
    go_on = threading.Event()

    def writing() -> Iterator[object]:
        yield delta(content="The river")
        go_on.wait(60)
        yield delta("stop", content=" flows.")

    slow.cut.clear()
    slow.replies = [streamed(writing())]
    with httpx2.stream(
        "POST", f"{url}/v1/ask", json={"question": QUESTION, "system": "direct", "model": "halting"}, timeout=60
    ) as response:
        told = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: "))
        run = next(told)["run"]
        token = next(told)
        assert (token["event"], token["text"], token["thought"]) == ("token", "The river", False)
    try:
        wait_until(lambda: count(lease.engine, run, CANCELLED), "the run is cancelled")
    finally:
        go_on.set()


def test_openai_s_client_gets_an_answer_with_sources_and_usage(client: "OpenAI") -> None:
    assert {"ircot:sample", "direct"} <= {model.id for model in client.models.list()}
    completion: Any = client.chat.completions.create(
        model="ircot:sample:writer", messages=[user("Hello"), user(QUESTION)], temperature=0, max_tokens=7
    )
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    assert "Ines Korvin was born in Ysborg." in choice.message.reasoning_content
    assert "The Drowned Bell" in [each.url_citation.title for each in choice.message.annotations]
    assert completion.usage.prompt_tokens > completion.usage.completion_tokens > 0
    assert completion.metadata["run"] in completion.id


def test_a_completion_streams(client: "OpenAI") -> None:
    chunks: list[Any] = list(
        client.chat.completions.create(
            model="ircot", messages=[user(QUESTION)], stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [each.choices[0].delta for each in chunks if each.choices]
    assert "".join(each.content or "" for each in deltas) == ANSWER
    assert "was composed by Ines Korvin." in "".join(getattr(each, "reasoning_content", "") for each in deltas)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens > 0


def test_a_response_streams_and_is_found_again(client: "OpenAI") -> None:
    with client.responses.stream(model="ircot:sample", input=QUESTION) as stream:
        kinds = [event.type for event in stream]
        response: Any = stream.get_final_response()
    assert response.output_text == ANSWER
    assert "response.reasoning_text.delta" in kinds
    assert kinds[-1] == "response.completed"
    again: Any = client.responses.retrieve(response.id)
    reasoning, message = again.output
    assert reasoning == response.output[0]
    assert message.content[0].annotations == response.output[1].content[0].annotations
    assert (again.output_text, again.usage) == (ANSWER, response.usage)


@pytest.mark.anyio
async def test_the_asynchronous_client_asks_in_the_background(url: str) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        response = await client.responses.create(model="ircot", input=QUESTION, background=True)
        assert response.status == "queued"
        while response.status in ("queued", "in_progress"):
            response = await client.responses.retrieve(response.id)
        assert (response.status, response.output_text) == ("completed", ANSWER)
        told = await client.chat.completions.create(model="ircot", messages=[user(QUESTION)], stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in told]) == ANSWER


def test_a_response_in_the_background_is_cancelled(client: "OpenAI", slow: Served) -> None:
    go_on = threading.Event()

    def writing() -> Iterator[object]:
        yield delta(content="The")
        go_on.wait(60)
        yield delta("stop", content=" end.")

    slow.replies = [streamed(writing())]
    response = client.responses.create(model="direct::halting", input=QUESTION, background=True)
    try:
        wait_until(lambda: client.responses.retrieve(response.id).status == "in_progress", "it is in progress")
        assert client.responses.cancel(response.id).status == "cancelled"
        assert client.responses.retrieve(response.id).status == "cancelled"
    finally:
        go_on.set()


def test_streams_end_with_their_token(url: str, slow: Served) -> None:
    go_on = threading.Event()

    def writing() -> Iterator[object]:
        yield delta(content="The")
        go_on.wait(60)
        yield delta("stop", content=" end.")

    slow.replies = [streamed(writing()) for _ in range(4)]
    question = {"question": QUESTION, "system": "direct", "model": "halting"}
    other = httpx2.post(f"{url}/v1/ask/background", json=question).json()["run"]
    made = httpx2.post(f"{url}/v1/tokens", json={"name": "short", "scopes": ["submit"]}).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    model = {"model": "direct::halting", "stream": True}
    asked = {
        "ask": question,
        "chat/completions": model | {"messages": [user(QUESTION)]},
        "responses": model | {"input": QUESTION},
    }
    with ExitStack() as stack:
        opened = {
            route: stack.enter_context(
                httpx2.stream("POST", f"{url}/v1/{route}", json=body, headers=headers, timeout=60)
            ).iter_lines()
            for route, body in asked.items()
        }
        events = f"{url}/v1/runs/{other}/events"
        opened["events"] = stack.enter_context(httpx2.stream("GET", events, headers=headers, timeout=60)).iter_lines()
        assert {route: next(lines)[:5] for route, lines in opened.items()} == {
            "ask": "event",
            "chat/completions": "data:",
            "responses": "event",
            "events": "retry",
        }
        try:
            assert httpx2.delete(f"{url}/v1/tokens/{made['id']}").status_code == 200
            ends = {
                route: [line for line in lines if line.startswith("data: {")][-1] for route, lines in opened.items()
            }
        finally:
            go_on.set()
    for route, end in ends.items():
        assert "this token isn't valid" in end, route
    assert json.loads(ends["ask"][6:])["status"] == json.loads(ends["events"][6:])["status"] == 401
    assert json.loads(ends["chat/completions"][6:])["error"]["type"] == "authentication_error"
    assert json.loads(ends["responses"][6:])["type"] == "error"
    door = RemoteTransport(url, made["secret"])
    with closing(door), through(door), pytest.raises(UnauthenticatedError):
        list(following.run_events(other))


def test_errors_are_openai_s(client: "OpenAI") -> None:
    import openai

    def ask(model: str = "ircot", **more: Any) -> None:
        client.chat.completions.create(model=model, **{"messages": [user(QUESTION)], **more})

    for model in ("nothing", "ircot:nothing", "ircot:sample:nothing"):
        with pytest.raises(openai.NotFoundError) as unknown:
            ask(model)
        assert unknown.value.code == "model_not_found"
    for name in ("nothing", "ircot:nothing", "ircot:sample:nothing"):
        with pytest.raises(openai.NotFoundError) as unknown:
            client.models.retrieve(name)
        assert unknown.value.code == "model_not_found"
    assert client.models.retrieve("ircot:sample:writer").id == "ircot:sample:writer"
    for refused in REFUSED:
        with pytest.raises(openai.BadRequestError) as error:
            ask(extra_body=refused)
        assert error.value.type == "invalid_request_error"
    with pytest.raises(openai.UnprocessableEntityError, match="failed: StepError"):
        ask(messages=[user("Fail.")])
    with pytest.raises(openai.APIError, match="failed: StepError"):
        list(client.chat.completions.create(model="ircot", messages=[user("Fail.")], stream=True))
    failed = client.responses.create(model="ircot", input="Fail.")
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error.to_dict()["code"] == "failed"  # `server_error` is asked again by those who evaluate
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_latest")


REFUSED: tuple[dict[str, Any], ...] = (
    {"n": 2},
    {"n": 0},
    {"tools": [{"type": "function"}]},
    {"tool_choice": "required"},
    {"tool_choice": {"type": "function", "function": {"name": "f"}}},
    {"functions": [{"name": "f"}]},
    {"function_call": {"name": "f"}},
    {"modalities": ["text", "audio"]},
    {"web_search_options": {}},
    {"logit_bias": {"50256": -100}},
    {"messages": [{"role": "system", "content": "x"}]},
)
"""What asks for another thing than a question's answer."""


def posted(url: str, route: str, body: dict[str, Any]) -> httpx2.Response:
    content = json.dumps({"model": "ircot:sample:writer", **body}).replace("QUESTION", QUESTION)
    return httpx2.post(f"{url}/v1/{route}", content=content, headers={"Content-Type": "application/json"}, timeout=60)


def test_programs_that_evaluate_models_are_answered(url: str) -> None:
    for program, body in COMPLETIONS.items():
        completion = posted(url, "chat/completions", body).json()
        assert completion["choices"][0]["message"]["content"] == ANSWER, program
    for program, body in RESPONSES.items():
        response = posted(url, "responses", body).json()
        assert response["output"][-1]["content"][0]["text"] == ANSWER, program
    for route, body in PROBABILITIES.items():
        refused = posted(url, route, body)
        assert refused.status_code == 400
        assert "no log probabilities" in refused.json()["error"]["message"]


def test_a_failed_question_is_not_asked_again_by_the_client(client: "OpenAI", lease: Lease) -> None:
    import openai

    asked = "SELECT count(*) FROM questions WHERE text = 'Fail.' AND run_id <> :run"
    before = count(lease.engine, "", asked)
    with pytest.raises(openai.UnprocessableEntityError):
        client.chat.completions.create(model="ircot", messages=[user("Fail.")])
    assert count(lease.engine, "", asked) == before + 1
