"""A system as an environment: a trainer writes the texts, searches are carried out, episodes are on record."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openenv.core import GenericEnvClient

import cotrail
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.errors import InputError
from cotrail.systems.registry import SYSTEMS
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, environment_of, stacked

PARAGRAPHS = [
    {"title": "The Drowned Bell", "text": "The Drowned Bell was composed by Marit Aune."},
    {"title": "Marit Aune", "text": "Marit Aune was born in Ysborg."},
]
QUESTIONS = [
    {"id": "a", "question": "Where was the composer of The Drowned Bell born?", "answers": ["Ysborg"]},
    {"id": "b", "question": "Who composed The Drowned Bell?", "answers": ["Marit Aune"]},
]
LOOKS = "I look. <search> composer of The Drowned Bell </search> and more"
SERVED = f"""
import cotrail
from cotrail import openenv

app = openenv.app(cotrail.Environment("search-r1", {QUESTIONS!r}, corpus={PARAGRAPHS!r}, record="episodes.jsonl"))
"""


@pytest.fixture(scope="module", autouse=True)
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="co-") as made, pytest.MonkeyPatch.context() as patched:
        patched.setenv("COTRAIL_HOME", made)
        script = {"name": "writer", "questions": {}, "default": {"answer": "", "sentences": []}}
        Path(made, "script.json").write_text(json.dumps(script))
        Path(made, "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        settings.cache_clear()
        yield Path(made)
    settings.cache_clear()


def environment(system: str = "search-r1", **fields: Any) -> cotrail.Environment:
    return cotrail.Environment(system, QUESTIONS, corpus=PARAGRAPHS, **fields)


def test_an_answer_that_is_not_made_of_the_record_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    systems = [*SYSTEMS]  # of which other tests learn nothing
    for module in ("cotrail.inprocess", "cotrail.systems.registry"):
        monkeypatch.setattr(f"{module}.SYSTEMS", systems)
    numbers = count()

    def counting(question: Question) -> System:
        yield from cotrail.search(question.text)
        return Answer(text=str(next(numbers)))

    asked = cotrail.ask(counting, "Who?", corpus=PARAGRAPHS)
    assert asked.failure is not None
    assert "recorded its answer; the code now yields another one" in asked.failure.message


def test_texts_that_no_store_holds_are_repaired_or_refused() -> None:
    assert cotrail.ask("one-step", "Who is \ud800?", corpus=PARAGRAPHS).failure is None
    with pytest.raises(InputError, match="a corpus is paragraphs of `title` and `text`"):
        cotrail.ask("one-step", "Who?", corpus=[{"text": "Alpha \ud800"}])


def test_a_model_that_is_trained_sees_what_it_wrote_and_what_was_found_until_it_answers() -> None:
    env = environment()
    assert len(env) == 2
    episode = env.episode(0)
    first = episode.seen
    assert QUESTIONS[0]["question"] in first.messages[-1]["content"]
    assert "</search>" in "".join(first.stop)
    second = episode.act(LOOKS)
    assert not second.done
    shown = "".join(each["content"] for each in second.messages)
    assert "I look. <search> composer of The Drowned Bell </search>" in shown
    assert "and more" not in shown
    assert "composed by Marit Aune" in shown
    last = episode.act("So: <answer> Ysborg </answer>")
    assert (last.done, last.reward, last.answer) == (True, 1.0, "Ysborg")
    with pytest.raises(InputError, match="the episode is done"):
        episode.act("more")
    assert env.episode(1).act("<answer> nobody </answer>").reward == 0.0


def test_calls_of_tools_are_carried_out_and_a_text_that_is_none_ends_it() -> None:
    episode = environment("tool-agent").episode(0)
    assert [each["function"]["name"] for each in episode.seen.tools]
    name = episode.seen.tools[0]["function"]["name"]
    found = episode.act("", [{"function": {"name": name, "arguments": '{"query": "Marit Aune"}'}}])
    assert found.messages[-1]["role"] == "tool"
    assert "born in Ysborg" in found.messages[-1]["content"]
    assert episode.act("Ysborg").done


def test_systems_that_need_more_than_texts_and_unknown_rewards_are_refused() -> None:
    with pytest.raises(InputError, match="probabilities: take another system"):
        environment("flare")
    with pytest.raises(InputError, match="reward by the name of one: answer_em"):
        environment(reward="taste")
    with pytest.raises(InputError, match="the one that a trainer trains"):
        cotrail.ask("one-step", "Who?", corpus=PARAGRAPHS, model="policy")


def test_a_thousand_episodes_at_once_are_on_record_and_imported(home: Path) -> None:
    record = home / "episodes.jsonl"
    env = environment(record=record)
    episodes = [env.episode(number % 2) for number in range(1_000)]

    async def play() -> None:
        await asyncio.gather(*(each.act_async(LOOKS) for each in episodes))
        await asyncio.gather(*(each.act_async("<answer> Ysborg </answer>") for each in episodes))

    asyncio.run(play())
    assert sum(each.seen.reward or 0 for each in episodes) == 500
    lines = [json.loads(line) for line in record.read_bytes().splitlines()]
    assert len({line["question"]["id"] for line in lines[1:]}) == 1_000
    with stacked(home, {}):
        run = [*COTRAIL, "import", str(record), "--json"]
        variables = environment_of(home, {})
        up = subprocess.run([*COTRAIL, "up"], env=variables, capture_output=True, text=True)
        assert up.returncode == 0, up.stderr
        done = subprocess.run(run, env=variables, check=True, capture_output=True, text=True)
        assert json.loads(done.stdout)["questions"] == 1_000
        name = json.loads(done.stdout)["run"]
        score = subprocess.run([*COTRAIL, "score", name, "--json"], env=variables, capture_output=True, text=True)
        assert json.loads(score.stdout)["metrics"]["answer_em"] == 0.5


def test_a_record_is_continued_and_another_s_is_left_alone(tmp_path: Path) -> None:
    record = tmp_path / "episodes.jsonl"
    for _ in range(2):
        episode = environment(record=record).episode(0)
        assert episode.act("<answer> Ysborg </answer>").done
        with record.open("ab") as file:
            file.write(b'{"question": {"id": "cut off')
    episode = environment(record=record).episode(0)
    episode.act("<answer> Ysborg </answer>")
    lines = [json.loads(line) for line in record.read_bytes().splitlines()]
    assert [line["question"]["id"] for line in lines[1:]] == ["a", "a#2", "a#3"]
    with pytest.raises(InputError, match="has other episodes, or something else"):
        environment("tool-agent", record=record)
    with pytest.raises(InputError, match="can't be written"):
        environment(record=tmp_path)
    with pytest.raises(InputError, match="there is no question 2"):
        environment().episode(2)
    with pytest.raises(InputError, match="a call is"):
        environment().episode(0).act("", [{}])


def test_a_client_of_openenv_plays_episodes_on_a_server(home: Path) -> None:
    (home / "served.py").write_text(SERVED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "served:app", "--port", str(port)]
    server = subprocess.Popen(command, cwd=home, env=os.environ | {"COTRAIL_HOME": str(home)})
    try:
        wait_until(lambda: _answers(f"http://127.0.0.1:{port}/health"), "the server answers")
        with GenericEnvClient(base_url=f"http://127.0.0.1:{port}").sync() as client:
            assert not client.reset(seed=1).done
            found = client.step({"text": LOOKS})
            assert "composed by Marit Aune" in str(found.observation["messages"])
            done = client.step({"text": "<answer> Marit Aune </answer>"})
            assert (done.done, done.reward) == (True, 1.0)
    finally:
        server.terminate()
        server.wait()


def test_the_page_on_training_does_what_it_says(home: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"COTRAIL_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "1.0 Ysborg\n", done.stderr
    cells = json.loads((Path(__file__).parents[2] / "docs" / "training.ipynb").read_text())["cells"]
    written = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in written)
    code = "\n".join("".join(cell["source"]) for cell in written)
    variables = os.environ | {"COTRAIL_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.stdout == "1.0 Ysborg\n", done.stderr


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.TransportError:
        return False
