"""Reading the store, and the commands that do: runs made by hand in a PostgreSQL of their own."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, func, select, text, update
from typer.testing import CliRunner, Result

from cotrail.cli.main import app
from cotrail.cli.terminal.following import follow
from cotrail.configuration.settings import Settings, settings
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.engines.retrieval.stores import open_index
from cotrail.errors import CotrailError, InputError, StepError, UnavailableError, UnknownNameError
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.progress import read_causes, read_progress
from cotrail.models.queries.runs import list_runs, resolve_run
from cotrail.models.queries.traces import read_question, read_questions, rebuild_prompt
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import paragraphs, runs, steps
from cotrail.services.results.steps import shown_steps
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.scores import run_cost
from cotrail.services.runs.speed import RunSpeed
from cotrail.services.runs.submission import prepare
from cotrail.systems.registry import find_system
from cotrail.workers.stack.stack import Stack
from tests.integration.stepping import admit_all
from tests.searching import search
from tests.unit.test_datasets import musique, processed

Cotrail = Callable[..., Result]
Submitted = Callable[..., str]

SAMPLE = Path(__file__).parents[2] / "cotrail" / "sample"
MODELS = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
UNSCRIPTED = "sample-03"
"""The question that the scripted model doesn't know, so that it fails."""


def sample_questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL of its own, migrated."""
    place = Settings(home=tmp_path_factory.mktemp("pg"), database_url=None, broker_url=None)
    stack = Stack(place)
    stack.start_servers()
    try:
        migrate(place.database)
        yield place.database.replace("postgresql+psycopg://", "postgresql://", 1)
    finally:
        stack.remove()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a scripted model that writes the sample's own chains."""
    folder = tmp_path_factory.mktemp("home")
    chains = {
        question["question"]: {"sentences": question["chain"][:-1], "answer": question["answers"][0]}
        for question in sample_questions()
        if question["id"] != UNSCRIPTED
    }
    (folder / "script.json").write_text(json.dumps({"name": "sample", "questions": chains}))
    (folder / "models.toml").write_text(MODELS)
    kept = ("id", "question", "answers", "gold")
    asked = [json.dumps({key: question[key] for key in kept}) for question in sample_questions()]
    (folder / "questions.jsonl").write_text("\n".join(asked))
    return folder


@pytest.fixture
def engine(home: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The store without a run in it; the process's settings lead there."""
    for name in ("BROKER_URL", "CORPORA", "MODEL"):
        monkeypatch.delenv(f"COTRAIL_{name}", raising=False)
    monkeypatch.setenv("COTRAIL_HOME", str(home))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database)
    settings.cache_clear()
    engine = connect(settings().database)
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE runs CASCADE"))
    yield engine
    engine.dispose()
    settings.cache_clear()


@pytest.fixture
def cotrail(engine: Engine, home: Path) -> Cotrail:
    """The command line in this process, with the sample indexed."""

    def cotrail(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    if not (home / "corpora" / "sample").exists():
        assert cotrail("index", SAMPLE / "corpus.jsonl", "--name", "sample").exit_code == 0
    return cotrail


@pytest.fixture
def submitted(engine: Engine, home: Path, cotrail: Cotrail) -> Submitted:
    """Submits a run over sample questions; options as in a run file."""

    def submitted(**options: Any) -> str:
        given = {
            "system": "ircot",
            "dataset": "jsonl",
            "questions": str(home / "questions.jsonl"),
            "corpus": "sample",
            "demonstrations": str(SAMPLE / "demonstrations.txt"),
            "limit": 3,
            "model": "scripted",
        }
        prepared = prepare(make_request(given | options))
        submit(engine, prepared.submission, prepared.questions, find_system)
        return prepared.submission.id

    return submitted


class Hands:
    """Carries out steps in this process, as workers would."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine = engine
        self.model = ScriptedModel(home / "script.json", "scripted")
        self.ledger = Ledger(engine, "hands@here", 30, find_system)
        self.retriever = open_index(home / "corpora" / "sample")

    def claim(self, run: str) -> list[Claim]:
        admit_all(self.engine)
        with self.engine.connect() as connection:
            ready = select(steps.c.id, steps.c.epoch, steps.c.kind)
            rows = connection.execute(ready.where(steps.c.run_id == run, steps.c.state == "ready")).all()
        return [claim for claim in self.ledger.claim([Dispatch(*row) for row in rows]) if claim is not None]

    def step(self, run: str) -> int:
        """Carries out every step of the run that is ready; returns how many there were."""
        claims = self.claim(run)
        self.ledger.commit([Completion(claim=each, outcome=self.outcome(each), milliseconds=12.5) for each in claims])
        return len(claims)

    def finish(self, run: str) -> str:
        while self.step(run):
            pass
        return run

    def outcome(self, claim: Claim) -> Outcome:
        action = claim.action
        if isinstance(action, Retrieve):
            return Retrieved(hits=search(self.retriever, action.query, action.count, action.titles))
        assert isinstance(action, Reason | Read)
        try:
            return self.model.generate(GenerationRequest(action.prompt, action.until, action.max_tokens))
        except StepError as error:
            return Failure(type=type(error).__name__, message=str(error))


@pytest.fixture
def hands(engine: Engine, home: Path, cotrail: Cotrail) -> Hands:
    return Hands(engine, home)


def test_a_run_is_found_by_its_id_the_beginning_of_it_and_as_the_latest(engine: Engine, submitted: Submitted) -> None:
    first, second = submitted(), submitted(system="one-step")
    with engine.connect() as connection:
        assert resolve_run(connection, first) == first
        assert resolve_run(connection, first[:-1]) == first
        assert resolve_run(connection, "latest") == second
        with pytest.raises(UnknownNameError, match="cotrail runs"):
            resolve_run(connection, "one_step")


def test_a_beginning_that_several_runs_share_is_refused_and_they_are_named(
    engine: Engine, submitted: Submitted
) -> None:
    both = {submitted(), submitted()}
    with engine.connect() as connection, pytest.raises(InputError) as refused:
        resolve_run(connection, "ircot")
    assert all(run in str(refused.value) for run in both)


def test_runs_are_listed_the_newest_first_with_their_counts(engine: Engine, submitted: Submitted, hands: Hands) -> None:
    first = hands.finish(submitted())
    second = submitted(limit=2)
    with engine.connect() as connection:
        listed = list_runs(connection)
    assert [each.run.id for each in listed] == [second, first]
    assert listed[0].questions["open"] == 2
    assert listed[0].state == "running"
    assert (listed[1].questions["finished"], listed[1].questions["failed"]) == (2, 1)
    assert listed[1].state == "finished"


def test_progress_counts_steps_by_kind_and_adds_up_tokens(engine: Engine, submitted: Submitted, hands: Hands) -> None:
    run = submitted(limit=2)
    hands.step(run)
    with engine.connect() as connection:
        early = {counts.kind: counts for counts in read_progress(connection, run).kinds}
    assert (early["retrieve"].finished, early["reason"].ready, early["reason"].due) == (2, 2, 2)
    assert (early["retrieve"].done_in_open, early["retrieve"].moving, early["reason"].moving) == (2, 0, 2)
    claimed = hands.claim(run)
    with engine.connect() as connection:
        busy = {counts.kind: counts for counts in read_progress(connection, run).kinds}["reason"]
    assert (busy.running, busy.ready, busy.due, busy.busy) == (2, 0, 0, True)
    hands.ledger.release(claimed)
    hands.finish(run)
    with engine.connect() as connection:
        progress = read_progress(connection, run)
        written = connection.execute(select(func.sum(steps.c.generated_tokens))).scalar_one()
        assert run_cost(connection, run).lost == {"released": 2}
    assert progress.open == 0
    assert progress.tokens("generated_tokens") == written > 0
    assert sum(counts.done_in_finished for counts in progress.kinds) == progress.steps
    assert {counts.done_in_open for counts in progress.kinds} == {counts.moving for counts in progress.kinds} == {0}


@pytest.mark.usefixtures("cotrail")
def test_watching_ends_when_no_question_is_open(submitted: Submitted, hands: Hands) -> None:
    run = submitted(limit=2)
    worker = threading.Thread(target=hands.finish, args=[run])
    worker.start()
    progress = follow(run)
    worker.join()
    assert (progress.open, progress.finished) == (0, 2)


def test_watching_says_that_no_worker_takes_steps_and_that_a_run_is_paused(
    engine: Engine, submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    run = submitted()
    speed = RunSpeed()
    with engine.connect() as connection:
        progress = read_progress(connection, run)
        speed.note(progress, 0.0)
        speed.note(progress, 9.0)
        assert speed.waits_for(progress) is None
        speed.note(progress, 10.5)
        assert "no worker has taken one" in str(speed.waits_for(progress))
    cotrail("pause", run)
    with engine.connect() as connection:
        assert "Paused" in str(speed.waits_for(read_progress(connection, run)))


def test_reasons_are_grouped_and_name_questions(engine: Engine, submitted: Submitted, hands: Hands) -> None:
    run = hands.finish(submitted())
    with engine.connect() as connection:
        [reason] = read_causes(connection, run)
    assert (reason.status, reason.type, reason.questions, reason.examples) == ("failed", "StepError", 1, (UNSCRIPTED,))


def test_a_trace_shows_which_search_first_found_each_collected_paragraph(
    engine: Engine, submitted: Submitted, hands: Hands
) -> None:
    run = hands.finish(submitted())
    with engine.connect() as connection:
        traced = read_question(connection, run, "sample-01")
    kinds = [step.kind for step in traced.steps]
    assert kinds == ["retrieve", "reason", "retrieve", "reason", "retrieve", "reason", "read"]
    assert traced.sentences == tuple(sample_questions()[0]["chain"])
    assert [each.paragraph.digest for each in traced.collected] == list(
        dict.fromkeys(hit.paragraph.digest for step in traced.steps for hit in step.hits)
    )
    for each in traced.collected:
        step = traced.steps[each.step]
        assert each.query == step.query
        assert step.hits[each.rank - 1].paragraph == each.paragraph
    new = [hit.digest for step in shown_steps(traced) for hit in step.view.found if hit.new]
    assert new == [each.paragraph.digest for each in traced.collected]


def test_an_unfinished_question_shows_what_there_is_so_far(engine: Engine, submitted: Submitted, hands: Hands) -> None:
    run = submitted(limit=1)
    for _ in range(3):
        hands.step(run)
    with engine.connect() as connection:
        [traced] = read_questions(connection, run)
    assert (traced.status, traced.answer) == ("open", None)
    assert traced.sentences == tuple(sample_questions()[0]["chain"][:1])
    assert {each.step for each in traced.collected} == {0, 2}


def test_a_question_goes_by_its_id_or_its_number(engine: Engine, submitted: Submitted) -> None:
    run = submitted()
    with engine.connect() as connection:
        assert read_question(connection, run, "2").key == "sample-02"
        for unknown in ("4", "0", "sample-99", "9" * 30, "²"):
            with pytest.raises(UnknownNameError, match="sample-01"):
                read_question(connection, run, unknown)


def test_every_prompt_is_rebuilt_byte_for_byte(engine: Engine, submitted: Submitted, hands: Hands) -> None:
    run = hands.finish(submitted(limit=2))
    with engine.connect() as connection:
        for traced in read_questions(connection, run):
            for step in traced.steps:
                if isinstance(step.result, Generated):
                    prompt = rebuild_prompt(connection, run, traced.key, step.sequence)
                    assert sha256(prompt.encode()).hexdigest() == step.result.prompt_digest


def test_trace_prints_the_exact_prompt_and_nothing_else(
    engine: Engine, submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted(limit=1))
    with engine.connect() as connection:
        step = read_question(connection, run, "1").steps[1]
    assert isinstance(step.result, Generated)
    printed = cotrail("trace", run, "sample-01", "--prompt", 1).stdout_bytes
    assert sha256(printed).hexdigest() == step.result.prompt_digest


def test_a_prompt_whose_parts_were_changed_is_not_passed_off_as_what_the_model_saw(
    engine: Engine, submitted: Submitted, hands: Hands
) -> None:
    run = hands.finish(submitted(limit=1))
    with engine.begin() as connection:
        before = connection.execute(select(paragraphs.c.digest, paragraphs.c.text)).all()
        amending(connection)
        connection.execute(update(paragraphs).values(text="Changed."))
        with pytest.raises(CotrailError, match="can't be rebuilt"):
            rebuild_prompt(connection, run, "sample-01", 1)
        for digest, original in before:
            connection.execute(update(paragraphs).where(paragraphs.c.digest == digest).values(text=original))


@pytest.mark.parametrize(("step", "complaint"), [(0, "has no prompt"), (99, "no step 99"), (-1, "no step -1")])
def test_a_step_without_a_prompt_is_refused(
    step: int, complaint: str, engine: Engine, submitted: Submitted, hands: Hands
) -> None:
    run = hands.finish(submitted(limit=1))
    with engine.connect() as connection, pytest.raises(InputError, match=complaint):
        rebuild_prompt(connection, run, "1", step)


def test_the_scores_equal_those_computed_from_the_export(submitted: Submitted, hands: Hands, cotrail: Cotrail) -> None:
    run = hands.finish(submitted(limit=8))
    scores = json.loads(cotrail("score", run, "--json").stdout)
    rows = [json.loads(line) for line in cotrail("export", run).stdout.splitlines()]
    gold = {each["id"]: set(each["gold"]) for each in sample_questions()}
    recalls, exact = [], []
    for row in rows:
        found = {paragraph["id"] for paragraph in row["paragraphs"]}
        recalls.append(len(gold[row["question_id"]] & found) / len(gold[row["question_id"]]))
        exact.append(row["status"] == "finished" and row["answer"] in row["gold_answers"])
    assert scores["metrics"]["paragraph_recall"] == pytest.approx(sum(recalls) / 8)
    assert scores["metrics"]["answer_em"] == pytest.approx(sum(exact) / 8) == 7 / 8
    assert (scores["run"], scores["system"], scores["questions"]) == (run, "ircot", 8)
    assert (scores["finished"], scores["failed"]) == (7, 1)
    assert {"steps", "prompt_tokens", "cached_prompt_tokens", "generated_tokens"} <= scores.keys()


def test_scores_have_intervals_and_stand_once_more_for_each_kind_of_questions(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    asked, page = tmp_path / "questions.jsonl", tmp_path / "report.html"
    kinds = [{"type": "bridge" if place else "comparison", "level": "hard"} for place in range(3)]
    lines = [json.dumps(question | {"kinds": of}) for question, of in zip(sample_questions(), kinds, strict=False)]
    asked.write_text("\n".join(lines))
    run = hands.finish(submitted(questions=str(asked)))
    scores = json.loads(cotrail("score", run, "--json").stdout)
    assert scores["intervals"]["answer_em"] == {
        "low": pytest.approx(0.09430, abs=1e-5),
        "high": pytest.approx(0.99160, abs=1e-5),
        "questions": 3,
        "method": "clopper-pearson",
    }
    assert scores["intervals"]["rouge_l"] is None
    sizes = {sort: {kind: part["questions"] for kind, part in of.items()} for sort, of in scores["kinds"].items()}
    assert sizes == {"type": {"bridge": 2, "comparison": 1}, "level": {"hard": 3}}
    assert scores["kinds"]["type"]["bridge"]["metrics"]["answer_em"] == 0.5
    shown = cotrail("score", run, "--all").stdout
    assert re.search(r"answer_em +66\.7 %  9\.4 to 99\.2 ", shown)
    assert re.search(r"\nbridge +2  50\.0 % \(1\.3 to 98\.7\) ", shown)
    assert "hard" not in shown
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert '<td class="t">bridge</td>' in page.read_text()
    assert "95&nbsp;%: 9.4\u00a0% to 99.2\u00a0%" in page.read_text()
    assert [json.loads(line)["kinds"] for line in cotrail("export", run).stdout.splitlines()] == kinds


def test_an_export_has_a_line_a_question_with_everything_behind_its_answer(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    run = hands.finish(submitted())
    path = tmp_path / "run.jsonl"
    assert json.loads(cotrail("export", run, "--output", path, "--json").stdout) == {
        "run": run,
        "format": "jsonl",
        "output": str(path),
        "questions": 3,
    }
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.jsonl"]
    rows = {row["question_id"]: row for row in map(json.loads, path.read_text().splitlines())}
    assert list(rows) == ["sample-01", "sample-02", UNSCRIPTED]
    row = rows["sample-01"]
    assert (row["status"], row["answer"], row["gold_answers"]) == ("finished", "Ysborg", ["Ysborg"])
    assert {"title", "text", "step", "rank", "score", "query"} <= row["paragraphs"][0].keys()
    assert (row["paragraph_recall"], row["answer_em"], row["answer_f1"]) == (1, 1, 1)
    failed = rows[UNSCRIPTED]
    assert (failed["status"], failed["answer"], failed["reason"]["type"]) == ("failed", None, "StepError")


def test_exports_for_official_scripts_have_their_form(submitted: Submitted, hands: Hands, cotrail: Cotrail) -> None:
    run = hands.finish(submitted())
    hotpotqa = json.loads(cotrail("export", run, "--format", "hotpotqa").stdout)
    assert hotpotqa["answer"] == {"sample-01": "Ysborg", "sample-02": "vertigo", UNSCRIPTED: ""}
    assert ["Ines Korvin", 0] in hotpotqa["sp"]["sample-01"]
    first = json.loads(cotrail("export", run, "--format", "musique").stdout.splitlines()[0])
    assert first == {
        "id": "sample-01",
        "predicted_answer": "Ysborg",
        "predicted_support_idxs": [],
        "predicted_answerable": True,
    }


def test_a_run_without_published_answers_has_no_scores_rather_than_zeros(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    asked = tmp_path / "questions.jsonl"
    asked.write_text(json.dumps({"id": "q", "question": sample_questions()[0]["question"]}))
    run = hands.finish(submitted(questions=str(asked)))
    metrics = json.loads(cotrail("score", run, "--json").stdout)["metrics"]
    assert (metrics["answer_em"], metrics["answer_f1"], metrics["paragraph_recall"]) == (None, None, None)
    assert metrics["paragraphs_collected"] > 0
    assert cotrail("score", run).exit_code == cotrail("trace", run, "1").exit_code == 0


def test_a_run_that_only_collects_paragraphs_has_no_score_of_answers(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    collecting = {"demonstrations": None, "model": None, "settings": {"reading": {"reader": "none"}}}
    run = hands.finish(submitted(system="one-step", **collecting))
    told = json.loads(cotrail("score", run, "--json").stdout)
    of_answers = ("answer_em", "answer_f1", "tuning_f1", "cover_em", "cover_em_words", "rouge_l")
    assert {told["metrics"][name] for name in of_answers} == {told["intervals"][name] for name in of_answers} == {None}
    assert told["metrics"]["paragraph_recall"] > 0
    assert "EM -, F1 -, paragraph recall" in cotrail("trace", run, "1").stdout
    report = tmp_path / "report.html"
    assert cotrail("report", run, "--html", report).exit_code == 0
    assert "✗ wrong" not in report.read_text()
    chains = hands.finish(submitted(settings={"reading": {"reader": "none"}}))
    assert json.loads(cotrail("score", chains, "--json").stdout)["metrics"]["answer_em"] is not None


def test_long_answers_have_rouge_l_in_their_scores_and_in_their_report(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    asked, page = tmp_path / "eli5-dev-kilt.jsonl", tmp_path / "report.html"
    record = {"id": "q", "input": sample_questions()[0]["question"], "output": [{"answer": "Ysborg, a town"}]}
    asked.write_text(json.dumps(record))
    run = hands.finish(submitted(dataset="eli5", questions=str(asked)))
    metrics = json.loads(cotrail("score", run, "--json").stdout)["metrics"]
    assert (metrics["rouge_l"], metrics["cover_em"], metrics["cover_em_words"]) == (0.5, 0, 0)
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert "<b>50.0\u00a0%</b><span>ROUGE-L</span>" in page.read_text()


def test_short_answers_have_cover_em_and_no_rouge_l(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    run, page = hands.finish(submitted()), tmp_path / "report.html"
    metrics = json.loads(cotrail("score", run, "--json").stdout)["metrics"]
    assert metrics["rouge_l"] is None
    assert metrics["cover_em"] >= metrics["answer_em"] > 0
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert "<span>Cover EM</span>" in page.read_text()
    assert "ROUGE-L" not in page.read_text()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A processed file of MuSiQue with the sample's first question, and MuSiQue's own, with an alias of its answer."""
    question, alias = sample_questions()[0], "Ysborg"
    known = {"question_text": question["question"], "answers_objects": [{"spans": ["the town of Ysborg"]}]}
    asked, own = tmp_path / "test_subsampled.jsonl", tmp_path / "musique_ans_v1.0_dev.jsonl"
    asked.write_text(json.dumps(processed("musique", question_id="2hop__1_2", **known)))
    own.write_text(json.dumps(musique(id="2hop__1_2", answer="the town of Ysborg", answer_aliases=[alias])))
    return asked, own


def test_a_run_on_processed_questions_is_scored_by_the_metric_of_their_dataset(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, files: tuple[Path, Path]
) -> None:
    asked, own = files
    run = hands.finish(submitted(dataset="musique", questions=str(asked), official=str(own)))
    scores = json.loads(cotrail("score", run, "--json").stdout)
    assert (scores["dataset"], scores["metrics"]["answer_em"]) == ("musique", 1)
    assert scores["metrics"]["tuning_f1"] < 1


def test_a_report_is_one_file_that_escapes_what_it_shows(
    submitted: Submitted, hands: Hands, cotrail: Cotrail, tmp_path: Path
) -> None:
    asked = tmp_path / "questions.jsonl"
    hostile = {"id": "<b>", "question": "<script>alert('x')</script> & why?"}
    asked.write_text((settings().home / "questions.jsonl").read_text() + "\n" + json.dumps(hostile))
    run = hands.finish(submitted(questions=str(asked), limit=None))
    path = tmp_path / "report.html"
    assert cotrail("report", run, "--html", path).exit_code == 0
    page = path.read_text()
    assert page.count("<script") == 1
    assert "script-src 'sha256-" in page
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 4
    assert page.count('<details class="q') == 33
    assert page.count("The original sets were by Bram Oldacre.") == 1


@pytest.mark.parametrize("arguments", [["runs"], ["show", "latest"], ["score", "latest"], ["trace", "latest", "1"]])
def test_readers_print_text_and_json(
    arguments: list[str], submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted())
    plain = cotrail(*arguments)
    assert (plain.exit_code, plain.stderr) == (0, "")
    assert run in plain.stdout
    assert run in cotrail(*arguments, "--json").stdout
    assert msgspec.json.decode(cotrail(*arguments, "--json").stdout)


def test_watch_exits_with_4_where_questions_have_no_answer(
    submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    complete, incomplete = hands.finish(submitted(limit=2)), hands.finish(submitted())
    assert cotrail("watch", complete).exit_code == 0
    watched = cotrail("watch", incomplete)
    assert watched.exit_code == 4
    assert "1 failed" in watched.stdout
    assert UNSCRIPTED in watched.stdout


def test_runs_are_paused_resumed_and_cancelled(submitted: Submitted, hands: Hands, cotrail: Cotrail) -> None:
    run = submitted()
    assert cotrail("pause", "latest").exit_code == 0
    assert hands.step(run) == 0
    assert json.loads(cotrail("show", run, "--json").stdout)["state"] == "paused"
    assert json.loads(cotrail("resume", run, "--json").stdout) == {"run": run, "done": "resume"}
    assert hands.step(run) == 3
    assert cotrail("cancel", run).exit_code == 0
    assert json.loads(cotrail("show", run, "--json").stdout)["cancelled"] == 3
    assert isinstance(cotrail("resume", run).exception, InputError)


def test_submit_prints_the_run_as_its_last_line(engine: Engine, home: Path, cotrail: Cotrail) -> None:
    (home / "run.toml").write_text(
        'system = "ircot"\ndataset = "jsonl"\nquestions = "questions.jsonl"\ncorpus = "sample"\nmodel = "scripted"\n'
        "retrieval_count = 2\n[settings]\nmax_sentence_tokens = 50\n[settings.retrieval]\nmax_paragraphs = 7\n"
    )
    printed = cotrail("submit", home / "run.toml", "--limit", 2, "--seed", 5, "--json").stdout
    run = json.loads(printed.splitlines()[-1])["run"]
    with engine.connect() as connection:
        row = connection.execute(select(runs).where(runs.c.id == run)).mappings().one()
        assert read_progress(connection, run).total == 2
    assert (row["seed"], row["temperature"], row["profile"]) == (5, 0, "fast")
    assert row["settings"]["retrieval"]["retrieval_count"] == 2
    assert row["settings"]["retrieval"]["max_paragraphs"] == 7
    assert row["settings"]["max_sentence_tokens"] == 50
    assert row["settings"]["max_sentences"] == 8
    assert row["model"].startswith("scripted@")
    assert row["provenance"]["request"]["limit"] == 2
    assert row["provenance"]["files"]["questions"]["path"] == str(home / "questions.jsonl")


def test_submit_waits_and_says_how_it_ended(hands: Hands, home: Path, cotrail: Cotrail) -> None:
    arguments = ("--system", "ircot", "--dataset", "jsonl", "--questions", home / "questions.jsonl")
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            with hands.engine.connect() as connection:
                runs_there = [each.run.id for each in list_runs(connection)]
            for run in runs_there:
                hands.step(run)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        done = cotrail(
            "submit", *arguments, "--corpus", "sample", "--model", "scripted", "--limit", 3, "--wait", "--json"
        )
    finally:
        ended.set()
        worker.join()
    assert done.exit_code == 4
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["finished"], last["failed"], last["open"]) == (2, 1, 0)


def test_a_database_without_tables_is_an_error_that_says_what_to_do(
    cotrail: Cotrail, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("/cotrail?", "/postgres?"))
    settings.cache_clear()
    error = cotrail("runs").exception
    assert isinstance(error, UnavailableError)
    assert "cotrail migrate" in str(error)


def test_many_questions_are_read_in_chunks_and_in_order(
    engine: Engine, submitted: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.models.queries.traces.CHUNK_QUESTIONS", 5)
    run = submitted(limit=12)
    with engine.connect() as connection:
        keys = [each.key for each in read_questions(connection, run)]
    assert keys == [each["id"] for each in sample_questions()[:12]]
