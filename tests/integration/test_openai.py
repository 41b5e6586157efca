import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.engines.language_models.catalogue import find_model, identity, open_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.model import ServedModel
from cotrail.engines.language_models.served.protocols.chat import Completions
from cotrail.engines.language_models.token_counts import estimated_tokens
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.errors import (
    BlockedError,
    CotrailError,
    InputError,
    PromptTooLongError,
    StepError,
    TransientStepError,
    UnavailableError,
)
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.conftest import Eventually
from tests.integration.served import KEY, Reply, Served, answer, delta, held, paused, piece, streamed

DEADLINE = 60.0

DEMONSTRATIONS = Demonstrations(
    items=tuple(
        Demonstration(
            id=name,
            paragraphs=(Paragraph(id=name, title=name, text=f"{name} is a city in {land}."),),
            question=f"In which land is {name}?",
            answer=f"{name} is a city in {land}. So the answer is: {land}.",
        )
        for name, land in [("Paris", "France"), ("Oslo", "Norway"), ("Cairo", "Egypt")]
    )
)
PROMPT = few_shot_prompt(
    demonstrations=DEMONSTRATIONS,
    paragraphs=(Paragraph(id="o", title="Ostmark", text="Ostmark is a country. Its capital is Brenn."),),
    question="What is the capital of Ostmark?",
)
WHOLE = [piece("Brenn is"), piece(" the capital."), piece("", "stop"), "[DONE]"]

Make = Callable[..., LanguageModel]


def write(model: LanguageModel, until: Until = "sentence", max_tokens: int = 24, prompt: Prompt = PROMPT) -> Generated:
    return model.generate(GenerationRequest(prompt, until, max_tokens))


def refused(model: LanguageModel) -> CotrailError:
    with pytest.raises(CotrailError) as caught:
        write(model)
    return caught.value


# What is asked for, and what is taken of the answer


def test_a_completion_is_asked_for_in_standard_words_and_its_first_line_is_kept(
    open_served: Make, served: Served
) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}
    served.replies = [streamed([*WHOLE[:-1], {"choices": [], "usage": usage}, "[DONE]"])]
    model = open_served(served.url, model="org/model")
    result = model.generate(GenerationRequest(PROMPT, "line", 24, Sampling(temperature=0.5, seed=7)))
    assert (result.text, result.raw) == ("Brenn is the capital.", "Brenn is the capital.")
    assert (result.prompt_tokens, result.cached_prompt_tokens, result.generated_tokens) == (70, 64, 5)
    assert (result.demonstrations, result.paragraphs, result.prompt_digest) == (3, 1, PROMPT.digest)
    asked = served.generations[0]
    assert asked.path == "/v1/completions"
    assert "Authorization" not in asked.headers
    assert asked.body == {
        "model": "org/model",
        "prompt": PROMPT.render(),
        "max_tokens": 24,
        "temperature": 0.5,
        "top_p": 1.0,
        "seed": 7,
        "stop": ["\n"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_chat_is_one_message_and_its_odd_chunks_are_borne(open_served: Make, served: Served) -> None:
    events = [
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        delta(role="assistant", content=None),
        delta(role="assistant", content="", reasoning_content="Hm. Let me think."),
        delta(content="Brenn is"),
        delta(content=" the capital.", tool_calls=None),
        delta("stop"),
        {"choices": [], "usage": None},
        "[DONE]",
    ]
    served.replies = [streamed(events)]
    result = write(open_served(served.url, api="chat"))
    assert result.raw == "Brenn is the capital."
    assert (result.thoughts, result.thoughts_are) == ("Hm. Let me think.", "whole")
    assert (result.generated_tokens, result.estimated) == (3, True)
    asked = served.generations[0]
    assert asked.path == "/v1/chat/completions"
    (message,) = asked.body["messages"]
    assert message["role"] == "user"
    assert message["content"].endswith(PROMPT.render())
    assert "stop" not in asked.body


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_chain_is_asked_for_up_to_a_further_demonstration_and_keeps_its_lines(
    open_served: Make, served: Served, api: str
) -> None:
    texts = ["It is.\n\n", "So the answer is: ", "Brenn.\n", "\nQuest", "ion: Who", " came"]
    pieces = [delta(content=text) if api == "chat" else piece(text) for text in texts]
    served.replies = [streamed(chain(pieces, repeat(pieces[-1])))]
    result = write(open_served(served.url, api=api), "chain", max_tokens=1000)
    assert result.text == "It is.\n\nSo the answer is: Brenn."
    assert served.cut.wait(DEADLINE)
    assert served.generations[0].body["stop"] == ["\nQ:", "\nWikipedia Title:"]


def test_what_runs_to_its_end_is_asked_for_without_a_stop(open_served: Make, served: Served) -> None:
    served.replies = [streamed([piece("It is.\n\nQ: Who?\n"), piece("A: I.", "stop"), "[DONE]"])]
    assert write(open_served(served.url), "end").text == "It is.\n\nQ: Who?\nA: I."
    assert "stop" not in served.generations[0].body


@pytest.mark.parametrize(("until", "written"), [("sentence", " It is. And so"), ("line", " It is. And so\n")])
def test_what_is_enough_ends_the_stream_at_the_server(
    open_served: Make, served: Served, until: Until, written: str
) -> None:
    served.replies = [streamed(chain([piece(written), piece(" on ")], repeat(piece("and on"))))]
    result = write(open_served(served.url), until, max_tokens=1000)
    assert result.text == ("It is." if until == "sentence" else "It is. And so")
    assert result.generated_tokens <= 2
    assert served.cut.wait(DEADLINE)


def test_vllm_is_known_by_its_tokenizer_and_asked_for_running_counts(open_served: Make, served: Served) -> None:
    served.tokenizer = answer(200, {"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3]})
    counted = [
        piece(text, usage={"prompt_tokens": 80, "completion_tokens": number})
        for number, text in enumerate(["One came.", " Two", " came. "], 1)
    ]
    served.replies = [streamed(chain(counted, repeat(piece("on"))))]
    result = write(open_served(served.url))
    assert (result.text, result.prompt_tokens, result.generated_tokens) == ("One came.", 80, 3)
    body = served.generations[0].body
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert (body["top_k"], body["min_p"], body["repetition_penalty"]) == (-1, 0.0, 1.0)
    tokenized = [asked for asked in served.asked if asked.path == "/tokenize"]
    assert all(asked.body["model"] == "m" for asked in tokenized)
    assert PROMPT.render() in [asked.body["prompt"] for asked in tokenized]


def test_a_prompt_is_packed_by_the_servers_tokenizer_else_by_an_estimate(open_served: Make, served: Served) -> None:
    served.replies = [streamed(WHOLE)]
    rough = write(open_served(served.url, context=150))
    assert 0 < rough.demonstrations < 3
    assert rough.prompt_digest == PROMPT.keep(rough.demonstrations, 1).digest
    assert len([asked for asked in served.asked if asked.path == "/tokenize"]) == 1
    assert rough.prompt_tokens <= 150 - 24
    served.tokenizer = answer(200, {"tokens": [1, 2]})
    assert write(open_served(served.url, context=150)).demonstrations == 3
    with pytest.raises(PromptTooLongError):
        write(open_served(served.url, context=25))


@pytest.mark.parametrize("reply", [answer(501), answer(403), answer(200, {"result": "none"}), streamed(["x"])])
def test_whatever_is_no_tokenizer_leaves_the_estimate(open_served: Make, served: Served, reply: Reply) -> None:
    served.tokenizer, served.replies = reply, [streamed(WHOLE)]
    assert write(open_served(served.url)).prompt_tokens == estimated_tokens(PROMPT.render())


def test_a_tokenizer_that_fails_is_tried_later(open_served: Make, served: Served) -> None:
    served.tokenizer, served.replies = answer(500), [streamed(WHOLE)]
    model = open_served(served.url)
    assert "its tokenizer failed" in str(refused(model))
    served.tokenizer = answer(200, {"tokens": [1] * 77})
    assert write(model).prompt_tokens == 77


@pytest.mark.parametrize("until", ["sentence", "line"])
def test_a_line_break_before_any_word_ends_what_is_written_at_once(
    open_served: Make, served: Served, until: Until
) -> None:
    served.replies = [streamed(chain([piece(" "), piece("\n")], repeat(piece("and on"))))]
    result = write(open_served(served.url), until, max_tokens=1000)
    assert (result.text, result.raw, result.generated_tokens) == ("", " \n", 2)


@pytest.mark.parametrize("until", ["sentence", "line"])
def test_blank_lines_that_open_a_chats_message_are_no_part_of_what_is_written(
    open_served: Make, served: Served, until: Until
) -> None:
    opening = [delta(role="assistant"), delta(content="\n\n"), delta(content=" \nIt is. "), delta(content="And so\n")]
    served.replies = [streamed(chain(opening, repeat(delta(content="and on"))))]
    result = write(open_served(served.url, api="chat"), until, max_tokens=1000)
    assert result.text == ("It is." if until == "sentence" else "It is. And so")
    assert "stop" not in served.generations[0].body


# Refusals and faults


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(open_served: Make, served: Served, status: int) -> None:
    served.tokenizer = answer(status, headers={"Retry-After": "0.01"})
    served.replies = [answer(status, headers={"Retry-After": "0.01"}), streamed(WHOLE)]
    model = open_served(served.url)
    assert type(refused(model)) is UnavailableError
    served.tokenizer = answer(404)
    assert write(model).text == "Brenn is the capital."
    assert len(served.generations) == 2


def test_a_busy_server_is_asked_again_when_it_says(open_served: Make, served: Served) -> None:
    served.replies = [answer(429, headers={"Retry-After": "1"}), streamed(WHOLE)]
    began = time.monotonic()
    write(open_served(served.url))
    assert time.monotonic() - began >= 1


def test_a_server_that_stays_busy_is_left_alone_for_a_while(open_served: Make, served: Served) -> None:
    served.replies = [answer(429, headers={"Retry-After": "0.01"})]
    error = refused(open_served(served.url))
    assert isinstance(error, UnavailableError)
    assert (str(error).partition("answered ")[2], error.seconds) == ("429: null; given up after 3 requests", 0.01)
    served.replies = [answer(503, {"error": {"message": "no GPU"}}, {"Retry-After": "3600"})]
    error = refused(open_served(served.url))
    assert isinstance(error, UnavailableError)
    assert (str(error).partition("answered ")[2], error.seconds) == ("503: no GPU; given up after 1 requests", 3600)


@pytest.mark.parametrize(
    ("reply", "kind", "problem"),
    [
        (answer(400, {"error": {"message": "seed is too odd"}}), StepError, "answered 400: seed is too odd"),
        (answer(404, {"detail": "no model m"}), StepError, "answered 404: no model m"),
        (answer(422, {"error": "unprocessable"}), StepError, "answered 422: unprocessable"),
        (
            answer(400, {"error": {"message": "This model's maximum context length is 16 tokens."}}),
            PromptTooLongError,
            "context of 4096 tokens: give it",
        ),
        (answer(401, {"error": {"message": f"bad key {KEY}"}}), BlockedError, "set the environment variable A_KEY"),
        (answer(403), BlockedError, "set the environment variable A_KEY"),
        (answer(307, headers={"Location": "http://127.0.0.1:1/v1"}), BlockedError, "redirect"),
        (answer(500, {"error": {"message": f"oh {KEY}"}}), TransientStepError, r"oh \[secret\]"),
        (answer(200, {"choices": []}), TransientStepError, "text/event-stream"),
        (streamed([piece("Brenn"), {"error": {"message": "no memory", "code": 500}}]), TransientStepError, "no memory"),
        (streamed([{"error": {"message": f"{KEY} is odd", "code": 400}}]), StepError, r"400: \[secret\] is odd"),
        (streamed([piece("Brenn"), "{broken"]), TransientStepError, "isn't in the form of its API"),
        (streamed([piece("Brenn is")]), TransientStepError, "broke off after 'Brenn is'"),
        (streamed([piece("Brenn is"), None]), TransientStepError, "broke off"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_the_key(
    open_served: Make,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    kind: type[Exception],
    problem: str,
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    caplog.set_level("DEBUG")
    served.replies = [reply]
    model = open_served(served.url, key_variable="A_KEY")
    with pytest.raises(kind, match=problem) as caught:
        write(model)
    assert type(caught.value) is kind
    assert len(served.generations) == 1
    assert served.generations[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{caught.value!r} {caplog.text} {model!r} {vars(model)}"


@pytest.mark.parametrize("value", [None, " ", "two\nlines", "schlüssel"])
def test_a_key_that_is_missing_or_odd_blocks(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("A_KEY", value)
    with pytest.raises(BlockedError, match="A_KEY holds no key"):
        open_served(served.url, key_variable="A_KEY")


def test_a_silent_server_is_given_up_and_the_step_tried_later(open_served: Make, served: Served) -> None:
    released = threading.Event()
    served.replies = [held(released, streamed(WHOLE)), streamed(paused(WHOLE[:1], released, WHOLE[1:]))]
    model = open_served(served.url, timeout_seconds=0.3)
    errors = [refused(model) for _ in range(2)]
    released.set()
    assert [type(error) for error in errors] == [TransientStepError] * 2
    assert all("ReadTimeout" in str(error) for error in errors)
    assert len(served.generations) == 2


def test_a_server_that_is_not_there_is_named(open_served: Make) -> None:
    gone = Served()
    gone.close()
    error = refused(open_served(gone.url))
    assert type(error) is UnavailableError
    assert "can't be reached" in str(error)


def test_a_request_that_ends_the_connection_each_time_fails_for_now_and_is_no_outage(
    open_served: Make, served: Served
) -> None:
    def hang_up(handler: Any) -> None:
        handler.close_connection = True

    served.replies = [hang_up]
    error = refused(open_served(served.url))
    assert type(error) is TransientStepError
    assert "broke off" in str(error)
    assert len(served.generations) >= 3
    served.replies = [hang_up, streamed(WHOLE)]
    assert write(open_served(served.url)).text == "Brenn is the capital."


def test_a_server_that_went_away_is_away_however_many_connections_were_kept(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.client.IDLE_SECONDS", 0.5)
    monkeypatch.setattr("cotrail.engines.language_models.served.client._BACKOFF", lambda _: 0.05)
    together = threading.Barrier(8)

    def all_at_once() -> Iterator[object]:
        together.wait(DEADLINE)
        yield from (piece("Brenn."), piece("", "stop"), "[DONE]")

    def reply(handler: BaseHTTPRequestHandler) -> None:
        streamed(all_at_once())(handler)

    served.replies = [reply]
    model = open_served(served.url)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: write(model, "line"), range(8)))
    served.close()
    assert isinstance(refused(model), UnavailableError)


# Many at once, and the end


def test_two_hundred_are_under_way_at_once_from_one_process(open_served: Make, served: Served) -> None:
    count = 200
    everybody = threading.Barrier(count)
    whole = streamed(WHOLE)

    def together(handler: Any) -> None:
        everybody.wait(DEADLINE)
        whole(handler)

    served.replies = [together]
    model = open_served(served.url)
    with ThreadPoolExecutor(count) as pool:
        results = list(pool.map(lambda _: write(model), range(count)))
    assert {result.text for result in results} == {"Brenn is the capital."}


@pytest.mark.parametrize(("in_flight", "seconds"), [(2, 0.5), (3, DEADLINE)])
def test_no_more_are_under_way_than_the_list_of_models_says(
    open_served: Make, served: Served, in_flight: int, seconds: float
) -> None:
    met: list[int] = []
    three = threading.Barrier(3)
    whole = streamed(WHOLE)

    def meet(handler: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            met.append(three.wait(seconds))
        whole(handler)

    served.replies = [meet]
    model = open_served(served.url, in_flight=in_flight)
    with ThreadPoolExecutor(6) as pool:
        assert len(list(pool.map(lambda _: write(model), range(6)))) == 6
    assert len(met) == (6 if in_flight == 3 else 0)


@pytest.mark.parametrize("waits_for", ["headers", "tokens", "its turn", "a connection"])
def test_an_interrupt_ends_what_is_under_way_and_what_comes_later(
    open_served: Make, served: Served, eventually: Eventually, waits_for: str
) -> None:
    released = threading.Event()
    served.replies = {
        "headers": [held(released, streamed(WHOLE))],
        "tokens": [streamed(paused(WHOLE[:1], released, WHOLE[1:]))],
        "its turn": [answer(503, headers={"Retry-After": "50"})],
        "a connection": [held(released, streamed(WHOLE))],
    }[waits_for]
    model = open_served(served.url, in_flight=1 if waits_for == "a connection" else 8)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(write, model) for _ in range(2 if waits_for == "a connection" else 1)]
        eventually(lambda: served.generations, "the server is asked")
        model.interrupt()
        assert [type(future.exception(DEADLINE)) for future in running] == [Interrupted] * len(running)
    released.set()
    with pytest.raises(Interrupted):
        write(model)


def test_one_generation_is_cut_off_and_the_others_go_on(
    open_served: Make, served: Served, eventually: Eventually
) -> None:
    released = threading.Event()
    # Without an end: what is sent after the cut may long lie in buffers before the client's going away is seen.
    served.replies = [streamed(paused(WHOLE[:1], released, rest)) for rest in (repeat(WHOLE[1]), WHOLE[1:])]
    model, cancellation = open_served(served.url), Cancellation()
    with ThreadPoolExecutor(2) as pool:
        cut = pool.submit(model.generate, GenerationRequest(PROMPT, "line", 24), cancellation)
        eventually(lambda: len(served.generations) == 1, "the server is asked")
        other = pool.submit(write, model, "line")
        eventually(lambda: len(served.generations) == 2, "the server is asked again")
        cancellation.cancel()
        assert isinstance(cut.exception(DEADLINE), Interrupted)
        assert not other.done()
        released.set()
        assert other.result(DEADLINE).text == "Brenn is the capital."
    assert served.cut.wait(DEADLINE)
    with pytest.raises(Interrupted):
        model.generate(GenerationRequest(PROMPT, "line", 24), cancellation)


def test_a_model_that_nobody_needs_any_more_ends_its_thread(served: Served, eventually: Eventually) -> None:
    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "openai"}

    served.replies = [streamed(WHOLE), answer(400)]
    before = threads()
    model = ServedModel(Endpoint(url=served.url, model="m", context=4096), "m", Completions(), ProcessLimiter())
    write(model)
    with suppress(StepError):
        write(model)
    assert len(threads() - before) == 1
    del model
    eventually(lambda: not threads() - before, "the thread ends")


# The catalogue


def test_the_identity_is_what_decides_the_output_and_not_where_it_is(open_served: Make, tmp_path: Path) -> None:
    def named(url: str, **fields: object) -> str:
        model = open_served(url, **fields)
        assert model.identity == identity(find_model(tmp_path / "models.toml", "served"))
        return model.identity

    known = named("http://127.0.0.1:1/v1")
    assert known == named("https://elsewhere/v1", key_variable="PATH", in_flight=3, timeout_seconds=1.0)
    changes: list[dict[str, object]] = [{"model": "n"}, {"revision": "2"}, {"api": "chat"}, {"context": 1}]
    assert len({known, *(named("http://127.0.0.1:1/v1", **change) for change in changes)}) == 5


def test_a_server_promises_no_deterministic_profile(open_served: Make, tmp_path: Path) -> None:
    open_served("http://127.0.0.1:1/v1")
    with pytest.raises(InputError, match="served is behind a server"):
        open_model(find_model(tmp_path / "models.toml", "served"), "deterministic", 1)


# A real server


def test_llama_cpp_writes_a_sentence_and_a_line_and_says_what_they_took(real: Make) -> None:
    model = real()
    sentence = write(model, max_tokens=40)
    line = write(model, "line", max_tokens=40)
    assert sentence.raw.lstrip().startswith(sentence.text)
    assert line.text.startswith(sentence.text)
    assert "\n" not in line.text
    assert 0 < sentence.generated_tokens < 40
    assert line.prompt_tokens == sentence.prompt_tokens > 100
    assert line.cached_prompt_tokens >= sentence.prompt_tokens - 8


def test_llama_cpp_stops_writing_where_the_sentence_ends(real: Make, llama: str, eventually: Eventually) -> None:
    def written() -> int:
        metrics = httpx2.get(f"{llama.removesuffix('/v1')}/metrics", headers={"Authorization": f"Bearer {KEY}"}).text
        return next(int(line.split()[1]) for line in metrics.splitlines() if line.startswith("llamacpp:tokens_pred"))

    before = written()
    result = write(real(), max_tokens=300)
    eventually(lambda: written() > before, "the server has counted what it wrote")
    assert result.generated_tokens <= written() - before <= result.generated_tokens + 4


def test_llama_cpp_counts_tokens_so_that_a_prompt_fills_the_context(real: Make) -> None:
    result = write(real(context=150), "line")
    assert 0 < result.demonstrations < 3
    assert result.prompt_tokens <= 150 - 24


def test_llama_cpp_chats(real: Make) -> None:
    result = write(real(api="chat"), "line")
    assert result.text
    assert result.prompt_tokens > 150
    assert result.generated_tokens <= 24


def test_llama_cpp_says_that_its_context_is_shorter_than_the_list_says(real: Make) -> None:
    long = few_shot_prompt(demonstrations=DEMONSTRATIONS, question="Who? " * 600)
    with pytest.raises(PromptTooLongError, match="context of 4096 tokens"):
        write(real(context=4096), prompt=long)


def test_llama_cpp_refuses_another_key(real: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "another")
    with pytest.raises(BlockedError, match="set the environment variable A_KEY"):
        write(real())


# What is too much


def endless(part: bytes) -> Reply:
    """Writes the same again and again until it is cut off; `cut` is set then."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.close_connection = True
        while True:
            handler.wfile.write(part)

    return reply


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            b'data: {"choices": [{"index": 0, "text": "%s"}]}\n\n' % (b"and so on " * 1000),
            "wrote more than 4,000,000 c",
        ),
        (b"data: " + b"x" * 100_000, "exceeded the 1048576 byte limit"),
        (b": a comment\n" * 1000, "wrote more than 8 MiB"),
    ],
    ids=["a text", "a line", "comments"],
)
def test_a_server_that_never_stops_writing_is_cut_off(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch, part: bytes, said: str
) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.client.MAX_STREAM_BYTES", 8 * 2**20)
    served.replies = [endless(part)]
    error = refused(open_served(served.url))
    assert isinstance(error, StepError | TransientStepError)
    assert said in str(error)


def test_an_answer_that_is_packed_though_nobody_asked_for_that_is_refused(open_served: Make, served: Served) -> None:
    served.replies = [answer(200, {"choices": []}, {"Content-Encoding": "gzip"})]
    error = refused(open_served(served.url))
    assert "compresses its responses" in str(error)
    assert served.generations[0].headers["Accept-Encoding"] == "identity"
