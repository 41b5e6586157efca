"""`cotrail demo` as a newcomer starts it: by its path, in the folder of every other command."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine

from benchmarks.workload import question
from cotrail.cli.commands.demo import QUESTION_COUNT
from cotrail.cli.commands.start import SAMPLE
from cotrail.cli.terminal.following import growing_traces
from cotrail.cli.terminal.output import Screen
from cotrail.configuration.settings import Settings
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.progress import read_progress
from cotrail.services.runs.speed import RunSpeed, WatchedRun
from cotrail.systems.registry import find_system
from cotrail.workers.stack.stack import Stack
from tests.integration.stepping import LEASE, begin, completed, run_to_end

SAMPLE_QUESTIONS = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text("utf-8").splitlines()]
COTRAIL = Path(sys.executable).with_name("cotrail")
FIRST = "Where was the composer of the ballet The Drowned Bell born?"
MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[models.stuck]
engine = "scripted"
path = "stuck.json"
"""


@pytest.fixture(scope="module")
def newcomer() -> Iterator[dict[str, str]]:
    """The environment of a user who has nothing but a home."""
    with tempfile.TemporaryDirectory(prefix="cd-") as made:
        home = Path(made, ".local", "share", "cotrail")
        home.mkdir(parents=True)
        # The model may only write pieces of the paragraph to which the chain leads, the fourth question's isn't gold.
        answers = {each["question"]: {"answer": each["answers"][0]} for each in SAMPLE_QUESTIONS[:QUESTION_COUNT]}
        answers[SAMPLE_QUESTIONS[3]["question"]] = {"answer": "1821"}
        script = {"name": "writer", "questions": answers}
        (home / "script.json").write_text(json.dumps(script))
        (home / "stuck.json").write_text(json.dumps({**script, "failures": {FIRST: {"answer": "transient"}}}))
        (home / "models.toml").write_text(MODELS)
        here = os.environ["PATH"].split(os.pathsep)
        elsewhere = [folder for folder in here if Path(folder).resolve() != COTRAIL.parent.resolve()]
        yield {"HOME": made, "PATH": os.pathsep.join(elsewhere), "COTRAIL_MAX_ATTEMPTS": "1000000"}
        Stack(Settings(home=home, database_url=None, broker_url=None)).remove()


def demonstrating(newcomer: Mapping[str, str], model: str) -> "subprocess.Popen[str]":
    """The demo, called by a relative path as `make demo` does."""
    called = os.path.relpath(COTRAIL, newcomer["HOME"])
    return subprocess.Popen(
        [called, "demo"],
        env={**newcomer, "COTRAIL_MODEL": model},
        cwd=newcomer["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def paste(newcomer: Mapping[str, str], printed: str, command: str) -> str:
    """What the printed command says in the same shell, whatever its folder is by then."""
    [line] = re.findall(rf"(?m)^  (\S+ {command}.*)$", printed)
    done = subprocess.run(["sh", "-c", line], env=dict(newcomer), cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def states(newcomer: Mapping[str, str]) -> set[str]:
    done = subprocess.run([COTRAIL, "stack", "--json"], env=dict(newcomer), capture_output=True, text=True)
    return {each["state"] for each in json.loads(done.stdout)["services"]}


@pytest.mark.timeout(900)
def test_what_it_says_at_its_end_is_true_and_can_be_pasted(newcomer: dict[str, str]) -> None:
    with demonstrating(newcomer, "stuck") as shown:
        assert shown.stdout is not None
        before = ""
        while line := shown.stdout.readline():
            before += line
            if line.startswith("1. + ★ "):  # and not an answer, which its model never gives
                break
        assert line, before
        shown.send_signal(signal.SIGINT)
        interrupted = shown.stdout.read()
    assert shown.returncode == 130
    assert f"Running, with its state in {newcomer['HOME']}/.local/share/cotrail." in before
    assert "The stack is stopped, and what the run has recorded is kept." in interrupted
    assert "continues" not in interrupted
    assert states(newcomer) == {"stopped"}

    paste(newcomer, interrupted, "up")
    assert "running" in states(newcomer)

    with demonstrating(newcomer, "scripted") as again:
        assert again.stdout is not None
        printed = again.stdout.read()
    assert again.returncode == 0, printed
    assert "Answers  7 of 8 are right" in printed
    assert "1. answer Ysborg\n1. gold   Ysborg\n" in printed
    assert "The stack keeps running." in printed
    assert "stopped" not in printed
    assert FIRST in paste(newcomer, printed, "trace")
    [address] = re.findall(r"See why each answer came out: (\S+)", printed)
    assert view(newcomer, "latest", "1") == f"{address}/questions/1"
    assert view(newcomer, server="http://localhost:1") == "http://localhost:1/"
    assert "Stopped." in paste(newcomer, printed, "down")
    assert states(newcomer) == {"stopped"}


@pytest.mark.timeout(900)
def test_in_a_terminal_the_run_can_be_looked_at_until_ctrl_c(newcomer: dict[str, str]) -> None:
    terminal, inside = pty.openpty()
    environment = {**newcomer, "COTRAIL_MODEL": "scripted", "TERM": "xterm"}
    with subprocess.Popen(
        [COTRAIL, "demo"], env=environment, cwd=newcomer["HOME"], stdin=inside, stdout=inside, stderr=inside
    ) as shown:
        os.close(inside)
        before = read_until(terminal, "Ctrl-C ends the demo")
        [address] = re.findall(r"See why each answer came out: (http://[^\s]+)", before)
        service, _, run = address.partition("/runs/")
        assert run in httpx2.get(service, headers={"Accept": "text/html"}).text
        shown.send_signal(signal.SIGINT)
        after = read_until(terminal, "")
    os.close(terminal)
    assert shown.returncode == 0, after
    assert "The stack is stopped, and the run is kept." in after
    assert states(newcomer) == {"stopped"}

    assert view(newcomer) == f"{service}/"  # which starts the stack again
    assert "running" in states(newcomer)
    subprocess.run([COTRAIL, "down"], env=newcomer, check=True, capture_output=True)


def read_until(terminal: int, wanted: str) -> str:
    """What is written to the terminal, up to this text; up to its end for an empty one."""
    written = ""
    with suppress(OSError):  # as Linux says that nobody writes there any more
        while not wanted or wanted not in written:
            written += os.read(terminal, 65_536).decode(errors="replace")
    assert wanted in written, written
    return written


def view(newcomer: Mapping[str, str], *words: str, server: str | None = None) -> str:
    """The address that `cotrail view` prints, and opens in the browser."""
    opened = Path(newcomer["HOME"], "opened")
    browser = Path(newcomer["HOME"], "browser")
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    command = [str(COTRAIL), *([] if server is None else ["--server", server]), "view", *words]
    done = subprocess.run(command, env={**newcomer, "BROWSER": f"{browser} %s"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert opened.read_text() == done.stdout
    return done.stdout.strip()


def shown_at_each_step(engine: Engine, screen: Screen) -> None:
    """A run of two questions, of which the first one is carried out to its end while it is shown."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    [first, second] = begin(engine, 2, id="growing")
    with growing_traces(screen, engine, "growing") as show:
        messages = [first]
        while messages:
            claims = [claim for claim in ledger.claim(messages) if claim is not None]
            messages = [m for following in ledger.commit([completed(claim) for claim in claims]) for m in following]
            show(reading(engine))
        run_to_end(ledger, [second])
        show(reading(engine))


def reading(engine: Engine) -> WatchedRun:
    speed = RunSpeed()
    with engine.connect() as connection:
        progress = read_progress(connection, "growing")
    speed.note(progress, 0.0)
    return speed.watched()


def test_each_step_is_a_line_as_soon_as_it_is_done(engine: Engine) -> None:
    screen = Screen(file=StringIO(), width=100)
    shown_at_each_step(engine, screen)
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    of_first = [line for line in lines if line.startswith("1. ")]
    of_second = [line for line in lines if line.startswith("2. ")]
    assert [line.split(" ")[1] for line in of_first].count("answer") == 1
    assert [line[3:] for line in of_first[-2:]] == [line[3:] for line in of_second[-2:]]
    assert len(of_first) == len(set(of_first)) > 5
    assert lines.index(of_first[-1]) < lines.index(of_second[-1])


def test_on_a_terminal_a_trace_grows_under_its_question_and_stays_once_it_has_ended(engine: Engine) -> None:
    screen = Screen(file=StringIO(), width=100, height=40, force_terminal=True, color_system=None)
    shown_at_each_step(engine, screen)
    written = screen.file.getvalue()  # type: ignore[attr-defined]
    for number in (1, 2):
        whole = rf"{number}\. {re.escape(question(number - 1))}\s+\+[^\n]+\n(?:   [^\n]+\n)+   answer [^\n]+\n   gold "
        assert len(re.findall(whole, written)) == 1
    assert written.count("1. ") > 5
