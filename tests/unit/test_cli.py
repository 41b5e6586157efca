"""The command line without a server: help, exit codes, errors in one line, and what is checked before submitting."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from cli.fork_request import prepare_fork
from cli.main import app, exit_code
from cli.output import cut, duration
from cli.plots import recall_by_search, recall_curve, sentences_per_question
from cli.request import make_request, prepare, read_run_file, system_settings
from cli.running import Pace, closing_line, expected_steps
from configuration.settings import settings
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import AnswerForm
from cotrail.core.questions import GoldParagraph
from cotrail.errors import BlockedError, CorpusError, CotrailError, InputError, UnavailableError, UnknownNameError
from cotrail.evaluation.metrics.question_scores import means
from cotrail.evaluation.metrics.question_scoring import question_scores
from cotrail.systems import find_system
from models.queries.progress import Progress, RunRecord, StepCounts, standing
from models.queries.traces import Collected, TracedQuestion, TracedStep
from tests.conftest import wait_until

ROOT = Path(__file__).parents[2]
DEMONSTRATION = '# METADATA: {"qid": "d"}\nWikipedia Title: T\nText.\n\nQ: Who?\nA: X did. So the answer is: X.\n'
COMMANDS = (  # noqa: SIM905
    "up down stack demo index data knowledge demonstrations submit fork experiment watch pause resume retry "
    "prioritize cancel runs show trace replay score rethink rethinking annotate export report"
).split()

Run = Callable[..., subprocess.CompletedProcess[str]]
Given = Callable[..., dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a scripted model, whose database doesn't answer."""
    for name in ("DATABASE_URL", "BROKER_URL", "CORPORA", "MODEL"):
        monkeypatch.delenv(f"COTRAIL_{name}", raising=False)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def given(home: Path) -> Given:
    """The keys of a run that can be submitted; named ones replaced, those of None left out."""
    corpus, questions = home / "corpus.jsonl", home / "questions.jsonl"
    corpus.write_text('{"id": "1", "title": "Ink", "text": "Ink stains paper."}\n')
    questions.write_text('{"id": "q1", "question": "What stains paper?", "answers": ["ink"], "gold": ["1"]}\n')
    (home / "demonstrations.txt").write_text(DEMONSTRATION)
    assert CliRunner().invoke(app, ["index", str(corpus), "--name", "ink"]).exit_code == 0

    def given(**changes: Any) -> dict[str, Any]:
        usual = {
            "system": "ircot",
            "dataset": "jsonl",
            "questions": str(questions),
            "corpus": "ink",
            "demonstrations": str(home / "demonstrations.txt"),
            "model": "scripted",
        }
        return {key: value for key, value in (usual | changes).items() if value is not None}

    return given


@pytest.fixture
def cotrail(home: Path) -> Run:
    """The command as a process."""

    def cotrail(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home), **environment},
            timeout=60,
        )

    return cotrail


def options(given: dict[str, Any]) -> list[str]:
    return [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", str(value))]


def test_the_help_lists_every_command_and_the_exit_codes(cotrail: Run) -> None:
    shown = cotrail("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert all(re.search(rf"\b{command}\b", shown.stdout) for command in COMMANDS)
    assert "Exit codes" in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, home: Path) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert "Usage: " in shown.stdout


def test_the_version_is_told() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.stdout) == (0, f"cotrail {version('cotrail')}\n")


def test_without_arguments_the_help_is_shown(cotrail: Run) -> None:
    shown = cotrail()
    assert "submit" in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["frobnicate"], 2, "No such command 'frobnicate'; see `cotrail --help`"),
        (["runs", "--frobnicate"], 2, "see `cotrail runs --help`"),
        (["submit", "--limit", "many"], 2, "see `cotrail submit --help`"),
        (["index", "missing.jsonl", "--name", "c"], 2, "missing.jsonl can't be read"),
        (["index", "missing.jsonl", "--name", "../c"], 2, "a corpus can't be named"),
        (["submit"], 2, "no system given; name it with --system"),
        (["submit", "missing.toml"], 2, "missing.toml can't be read"),
        (["runs"], 3, "cotrail up"),
        (["show", "latest"], 3, "cotrail up"),
        (["watch", "latest"], 3, "cotrail up"),
        (["pause", "latest"], 3, "cotrail up"),
        (["export", "latest", "--format", "parquet"], 2, "see `cotrail export --help`"),
    ],
)
def test_an_error_is_one_line_on_standard_error(arguments: list[str], code: int, said: str, cotrail: Run) -> None:
    ended = cotrail(*arguments)
    assert ended.returncode == code
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith("cotrail: ")
    assert said in line


def test_a_database_by_url_that_does_not_answer_is_named_as_such(cotrail: Run) -> None:
    ended = cotrail("runs", COTRAIL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/cotrail")
    assert ended.returncode == 3
    assert "COTRAIL_DATABASE_URL" in ended.stderr


def test_an_unusable_environment_variable_is_named(cotrail: Run) -> None:
    ended = cotrail("runs", COTRAIL_LEASE_SECONDS="soon")
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert "COTRAIL_LEASE_SECONDS" in line


def _is_over_once_interrupted(process: "subprocess.Popen[bytes]") -> bool:
    """A signal that comes just before a read blocks isn't seen until the read returns: one presses Ctrl-C again."""
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    return process.returncode is not None


def test_an_interruption_exits_with_130(home: Path, given: Given) -> None:
    fifo = home / "pipe.jsonl"
    os.mkfifo(fifo)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home)}
    command = [sys.executable, "-m", "cli.main", "index", str(fifo), "--name", "endless"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        with fifo.open("w"):  # opens only once the command reads it
            wait_until(lambda: _is_over_once_interrupted(process), "the command is over", 30)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    assert not (home / "corpora" / "endless").exists()


def test_a_reader_that_has_seen_enough_causes_no_complaint(home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home)}
    command = [sys.executable, "-m", "cli.main", "submit", "--help"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("error", "code"),
    [(CorpusError("x"), 2), (UnknownNameError("x"), 2), (UnavailableError("x"), 3), (BlockedError("x"), 1)],
)
def test_each_kind_of_error_has_its_exit_code(error: CotrailError, code: int) -> None:
    assert exit_code(error) == code


def test_index_prints_what_it_made(home: Path, given: Given, cotrail: Run) -> None:
    printed = json.loads(cotrail("index", home / "corpus.jsonl", "--name", "again", "--json").stdout)
    assert (printed["corpus"], printed["paragraphs"]) == ("again", 1)
    assert len(printed["revision"]) == 64
    assert "1 paragraph " in cotrail("index", home / "corpus.jsonl", "--name", "again").stdout


@pytest.mark.parametrize(
    "line",
    ["not JSON", '{"id": "2", "title": "T"}', '{"id": "2", "title": "T", "text": "a\\u0000b"}', '{"id": "\\ud800"}'],
)
def test_a_corpus_line_that_can_not_be_used_is_named_and_leaves_nothing_behind(
    line: str, home: Path, cotrail: Run
) -> None:
    path = home / "bad.jsonl"
    path.write_text(f'{{"id": "1", "title": "Ink", "text": "Stains."}}\n{line}\n')
    ended = cotrail("index", path, "--name", "bad")
    assert ended.returncode == 2
    assert "bad.jsonl, line 2" in ended.stderr
    assert not (home / "corpora" / "bad").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system": None}, "no system given"),
        ({"system": "ircott"}, "there are: chain-of-thought"),
        ({"dataset": "squad"}, "there are: hotpotqa, 2wikimultihopqa"),
        ({"corpus": "unknown"}, "there are: ink"),
        ({"corpus": None}, "name one with --corpus"),
        ({"model": "gpt-9"}, "scripted"),
        ({"questions": "missing.jsonl"}, "missing.jsonl can't be read"),
        ({"demonstrations": "missing.txt"}, "missing.txt can't be read"),
        ({"limit": 0}, "limit"),
        ({"retrieval_count": 0}, "retrieval_count"),
        ({"retrieval_count": "four"}, "retrieval_count"),
        ({"reader": "oracle"}, "reader"),
        ({"profile": "slow"}, "profile"),
        ({"temperature": -1}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**31}, "seed"),
        ({"colour": "red"}, "there is no key 'colour'"),
        ({"set_number": 2}, "a set_number needs sets"),
        ({"system": "one-step", "max_sentences": 3}, "one-step has no max_sentences"),
        ({"system": "no-retrieval", "retrieval_count": 3}, "no-retrieval has no retrieval_count"),
        ({"settings": {"max_sentencs": 3}}, "there is no key `max_sentencs`"),
        ({"settings": {"retrieval": {"count": 3}}}, "there is no key `count`"),
        ({"settings": {"retrieval": 3}}, "retrieval"),
        ({"system": "rethinking", "settings": {"knowledge": ["evidence"]}}, "the corpus has none of them"),
    ],
)
def test_a_run_that_can_not_work_is_refused_by_name(changes: dict[str, Any], said: str, given: Given) -> None:
    with pytest.raises(InputError) as refused:
        prepare(make_request(given(**changes) | {key: value for key, value in changes.items() if value is not None}))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ("", "no questions"),
        ('{"id": "1", "question": "A?"}\n{"id": "1", "question": "B?"}', "has the id '1' too"),
        ('{"id": "1", "question": " "}', "the id or the question is empty"),
        ('{"id": "1", "question": "A\\u0000?"}', "NUL"),
        ('{"id": "1", "question": "A\\ud800?"}', "line 1"),
        ('{"id": "1", "question": "A?", "gold": ["9"]}', "no paragraph 9"),
    ],
)
def test_a_question_file_that_can_not_work_is_refused(questions: str, said: str, given: Given, cotrail: Run) -> None:
    asked = given()
    Path(asked["questions"]).write_text(questions)
    ended = cotrail("submit", *options(asked))
    assert ended.returncode == 2
    assert said in ended.stderr


def test_demonstrations_of_answers_alone_are_refused_for_chains(given: Given) -> None:
    asked = given()
    Path(asked["demonstrations"]).write_text(DEMONSTRATION.replace("X did. So the answer is: X.", "X"))
    with pytest.raises(InputError, match="chains of thought"):
        prepare(make_request(asked))
    assert prepare(make_request(asked | {"system": "one-step"})).submission.system == "one-step"


def test_a_run_shows_a_named_set_in_its_order(given: Given, home: Path) -> None:
    four = "\n\n\n".join(DEMONSTRATION.replace('"d"', f'"d{n}"') for n in range(4))
    (home / "demonstrations.txt").write_text(four)
    (home / "sets.json").write_text('[["d0"], ["d3", "d1"]]')
    (home / "run.toml").write_text('sets = "sets.json"\nset_number = 2\n')
    prepared = prepare(make_request(given() | read_run_file(home / "run.toml")))
    for shots in prepared.submission.shots.values():
        assert [each.id for each in shots.items] == ["d3", "d1"]
    assert prepared.submission.provenance["files"]["sets"]["path"] == str(home / "sets.json")
    first = prepare(make_request(given(sets=str(home / "sets.json"))))
    assert {each.id for shots in first.submission.shots.values() for each in shots.items} == {"d0"}


def test_a_fork_that_needs_chains_takes_them_from_the_set_that_its_origin_showed(given: Given, home: Path) -> None:
    four = "\n\n\n".join(DEMONSTRATION.replace('"d"', f'"d{n}"') for n in range(4))
    (home / "demonstrations.txt").write_text(four)
    (home / "sets.json").write_text('[["d0"], ["d3", "d1"]]')
    shown = {"sets": str(home / "sets.json"), "set_number": 2}
    origin = prepare(make_request(given(system="no-retrieval", **shown))).submission
    known = msgspec.structs.asdict(origin) | msgspec.structs.asdict(origin.binding)
    record = cast(RunRecord, SimpleNamespace(**known | {"corpus": None, "corpus_revision": ""}))
    fork = prepare_fork(record, origin.shots, {"settings.reading.reader": "cot"}, None)
    assert [each.id for each in fork.shots[AnswerForm.COT].items] == ["d3", "d1"]
    (home / "sets.json").write_text('[["d0"], ["d2"]]')
    with pytest.raises(InputError, match=r"sets.json isn't the file that run .* was submitted with"):
        prepare_fork(record, origin.shots, {"settings.reading.reader": "cot"}, None)


def test_released_sets_are_no_file(given: Given, home: Path) -> None:
    (home / "run.toml").write_text('sets = "released"\n')
    asked = make_request(given() | read_run_file(home / "run.toml"))
    assert asked.sets == "released"
    with pytest.raises(InputError, match=r"demonstrations.txt: none of these demonstrations is in the released sets"):
        prepare(asked)


def test_all_is_checked_before_a_server_is_asked(given: Given, cotrail: Run) -> None:
    assert cotrail("submit", *options(given())).returncode == 3
    assert cotrail("submit", *options(given(model="unknown"))).returncode == 2


def test_a_prepared_run_pins_everything_that_decides_its_results(given: Given) -> None:
    prepared = prepare(make_request(given(retrieval_count=2, max_sentences=3, reader="cot", temperature=0.5, seed=7)))
    submission = prepared.submission
    assert re.fullmatch(r"ircot-\d{8}-[0-9a-f]{6}", submission.id)
    assert submission.settings["retrieval"]["retrieval_count"] == 2
    assert submission.settings["retrieval"]["max_paragraphs"] == 15
    assert (submission.settings["max_sentences"], submission.settings["reading"]["reader"]) == (3, "cot")
    assert set(submission.shots) == {AnswerForm.COT}
    assert submission.binding.model.startswith("scripted@")
    assert (submission.binding.temperature, submission.binding.seed, submission.binding.profile) == (0.5, 7, "fast")
    assert submission.binding.corpus
    assert submission.provenance["files"].keys() == {"questions", "demonstrations"}
    assert prepared.questions[0].gold == (GoldParagraph(title="Ink", text="Ink stains paper."),)
    msgspec.json.encode(submission)


@pytest.mark.parametrize("priority", [None, 5, -3])
def test_a_run_has_the_priority_that_it_is_given(priority: int | None, given: Given) -> None:
    assert prepare(make_request(given(priority=priority))).submission.priority == (priority or 0)


def test_what_a_setting_leaves_open_stays_the_systems_own_default(given: Given) -> None:
    asked = given(system="one-step", settings={"retrieval": {"max_paragraphs": 20}})
    assert prepare(make_request(asked)).submission.settings["retrieval"]["retrieval_count"] == 15


@pytest.mark.parametrize("system", ["rethinking", "self-consistency", "chain-of-thought", "few-shot", "zero-shot"])
@pytest.mark.parametrize(("rules", "until"), [("paper", "chain"), ("released", "end")])
def test_chains_are_read_by_the_rules_that_are_named(system: str, rules: str, until: str, given: Given) -> None:
    request = make_request(given(system=system, rules=rules))
    configured = system_settings(find_system(system), request)
    assert (configured["chain_rules"], configured["until"]) == (rules, until)
    by_the_paper = system_settings(find_system(system), make_request(given(system=system)))
    assert configured == by_the_paper | {"chain_rules": rules, "until": until}


def test_a_run_without_demonstrations_or_retrieval_has_none(given: Given) -> None:
    submission = prepare(make_request(given(system="no-retrieval", demonstrations=None))).submission
    assert (submission.corpus, submission.binding.corpus) == (None, "")
    assert [shots.items for shots in submission.shots.values()] == [()]


def test_paths_in_a_run_file_are_relative_to_it(tmp_path: Path) -> None:
    file = tmp_path / "runs" / "a.toml"
    file.parent.mkdir()
    file.write_text('questions = "../q.jsonl"\ndemonstrations = "/d.txt"\n')
    assert read_run_file(file) == {"questions": f"{tmp_path}/runs/../q.jsonl", "demonstrations": "/d.txt"}


def test_a_run_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("system = ")
    with pytest.raises(InputError, match="isn't TOML"):
        read_run_file(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0123, "12 ms"),
        (1.24, "1.2 s"),
        (42.4, "42 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_text_is_cut_between_words_and_stays_one_line() -> None:
    assert cut("one\n two", 10) == "one two"
    assert cut("one two three", 9) == "one two…"
    assert cut("漢字" * 20, 10) == "漢字" * 4 + "漢…"


def test_wide_characters_and_long_words_wrap_within_the_width() -> None:
    from cli.output import console, grid

    table = grid("", "")
    table.add_row("★", "漢字" * 100 + " [bold]x[/bold] " + "w" * 300)
    screen = console()
    with screen.capture() as captured:
        screen.print(table)
    assert "[bold]" in captured.get().replace("\n", "").replace(" ", "")
    assert max(map(cell_len, captured.get().splitlines())) <= screen.width


@pytest.mark.parametrize(
    ("state", "counts", "stopped", "said"),
    [
        ("active", {"open": 1, "blocked": 1}, False, "running"),
        ("active", {"open": 1, "blocked": 1}, True, "blocked"),
        ("paused", {"open": 1, "blocked": 0}, False, "paused"),
        ("paused", {"open": 0, "blocked": 0}, False, "finished"),
        ("active", {"open": 0, "blocked": 1}, False, "blocked"),
        ("cancelled", {"open": 0, "blocked": 0}, False, "cancelled"),
    ],
)
def test_a_run_stands_in_one_word(state: str, counts: dict[str, int], *, stopped: bool, said: str) -> None:
    assert standing(state, counts, stopped=stopped) == said


def progress(done: int, *, finished: int = 2, total: int = 4, due: int = 0, busy: bool = False) -> Progress:
    statuses = {"open": total - finished, "finished": finished, "failed": 0, "blocked": 0, "cancelled": 0}
    counts = StepCounts(
        waiting=0,
        kind="reason",
        ready=due,
        blocked=0,
        under_way=due,
        running=0,
        finished=done,
        failed=0,
        adopted=0,
        due=due,
        busy=busy,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
        milliseconds=0,
    )
    return Progress(
        run="r", state="active", questions=statuses, kinds=(counts,), seconds=9.5, done_in_finished=5 * finished
    )


def test_the_time_left_follows_from_the_rate_and_from_finished_questions() -> None:
    pace = Pace()
    pace.note(progress(8), 100.0)
    assert pace.left(progress(8)) is None
    pace.note(progress(12), 102.0)
    assert pace.rate == 2.0
    assert expected_steps(progress(12)) == 20
    assert pace.left(progress(12)) == 4.0
    assert pace.left(progress(12, finished=0)) is None


def test_no_time_is_told_for_a_run_that_takes_more_steps_than_its_first_questions_promised() -> None:
    pace = Pace()
    pace.note(progress(8), 100.0)
    pace.note(progress(21), 102.0)
    assert pace.left(progress(21)) is None


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    pace = Pace()
    for second in range(100):
        pace.note(progress(0 if second < 60 else 10 * (second - 60)), float(second))
    assert pace.rate == pytest.approx(10)


def test_steps_that_wait_behind_others_are_not_without_a_worker() -> None:
    pace = Pace()
    waiting = progress(3, due=5, busy=True)
    for second in (0.0, 60.0):
        pace.note(waiting, second)
    assert pace.waits_for(waiting) is None
    abandoned = progress(3, due=5)
    for second in (61.0, 80.0):
        pace.note(abandoned, second)
    assert "no worker has taken one for 19 s" in str(pace.waits_for(abandoned))


def test_the_closing_line_says_what_did_not_finish() -> None:
    assert closing_line(progress(10)) == "r: 2 of 4 questions finished, 2 open; 10 steps in 9.5 s."


def question(*found: tuple[int, str], gold: tuple[str, ...], searches: int = 2, sentences: int = 1) -> TracedQuestion:
    """A question that found paragraphs of these texts at these steps."""
    steps = [
        TracedStep(sequence=n, kind="retrieve", state="finished", worker=None, attempts=1, milliseconds=1.0)
        for n in range(searches)
    ]
    collected = [
        Collected(paragraph=Paragraph(id=text, title="T", text=text), step=step, query="", rank=1, score=1.0)
        for step, text in found
    ]
    return TracedQuestion(
        key="k",
        text="t",
        answers=(),
        gold=tuple(GoldParagraph(title="T", text=text) for text in gold),
        pinned=None,
        kind="",
        status="finished",
        answer="",
        reason=None,
        sentences=("s",) * sentences,
        collected=tuple(collected),
        steps=tuple(steps),
    )


def test_the_recall_curve_grows_with_each_search() -> None:
    assert recall_curve(question((0, "a"), (1, "b"), gold=("a", "b"))) == [0.5, 1.0]
    assert recall_curve(question((0, "a"), gold=())) == []


def test_a_question_that_stopped_keeps_its_recall_in_the_mean() -> None:
    plot = recall_by_search(
        [question((0, "a"), gold=("a",), searches=1), question((1, "a"), gold=("a",)), question(gold=())]
    )
    assert plot is not None
    assert [mark.value for mark in plot.marks] == ["50%", "100%"]
    assert plot.marks[0].y > plot.marks[1].y


def test_without_gold_or_sentences_there_is_nothing_to_plot() -> None:
    assert recall_by_search([question(gold=())]) is None
    assert recall_by_search([]) is None
    assert sentences_per_question([question(gold=(), sentences=0)]) is None


def test_sentences_are_counted_by_question() -> None:
    plot = sentences_per_question([question(gold=(), sentences=n) for n in (1, 3, 3)])
    assert plot is not None
    assert [(mark.label, mark.value) for mark in plot.marks] == [("0", "0"), ("1", "1"), ("2", "0"), ("3", "2")]


def test_an_unfinished_question_scores_nothing_for_its_answer_and_recall_for_what_it_has() -> None:
    ink = Paragraph(id="1", title="Ink", text="Stains.")
    gold = (GoldParagraph(title="Ink", text="Stains."),)
    done = question_scores("jsonl", "ink", ("ink",), [ink], gold)
    unfinished = question_scores("jsonl", None, ("ink",), [ink], gold)
    assert (done.answer_em, done.answer_f1, done.support_recall) == (1, 1, 1)
    assert (unfinished.answer_em, unfinished.answer_f1, unfinished.support_recall) == (0, 0, 1)
    expected = {"answer_em": 0.5, "answer_f1": 0.5, "support_recall": 1.0, "paragraphs_collected": 1}
    assert expected.items() <= means([done, unfinished]).items()


def test_means_leave_out_questions_without_published_answers() -> None:
    published = question_scores("jsonl", "ink", ("ink",), [], ())
    unpublished = question_scores("jsonl", "ink", (), [], ())
    assert means([published, unpublished])["answer_em"] == 1
    assert means([unpublished])["answer_em"] is None
    assert means([])["paragraphs_collected"] is None


def test_gold_paragraphs_that_the_corpus_lacks_are_counted_before_a_run(given: Given, home: Path) -> None:
    assert prepare(make_request(given())).missing_gold == 0
    lost = {"id": "q2", "question": "Where?", "gold": [{"title": "Lost", "text": "It is lost."}]}
    with (home / "questions.jsonl").open("a") as file:
        file.write(json.dumps(lost) + "\n")
    assert prepare(make_request(given())).missing_gold == 1


def test_the_demos_run_is_accepted_over_the_bundled_sample(home: Path) -> None:
    from cli.corpora import build
    from cli.demo import CORPUS, QUESTIONS, SAMPLE, sample_request

    build([SAMPLE / "corpus.jsonl"], CORPUS)
    prepared = prepare(msgspec.structs.replace(sample_request(QUESTIONS), model="scripted"))
    assert len(prepared.questions) == QUESTIONS
    assert all(question.gold for question in prepared.questions)
