"""Plans of runs in a real store: sealed as a run is submitted, shown with every departure from them, and audited."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from typer.testing import Result

from cotrail import __version__
from cotrail.audit.bundles import bundle_pieces, read_bundle, write_bundle
from cotrail.audit.provenance import provenance
from cotrail.audit.records import Record, end_of, read_record, write_record
from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.audit.verification import verify
from cotrail.configuration.settings import settings
from cotrail.models.execution.leases import Completion
from cotrail.models.queries.traces import find_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.services.runs import conducting
from cotrail.services.runs.conducting import Schedule
from cotrail.services.runs.experiments import read_experiment_file
from tests.integration.conftest import Cotrail, Query
from tests.integration.forging import resealed
from tests.integration.stepping import begin, close_runs, end_all_unbegun
from tests.integration.test_audit import Hands

pytestmark = pytest.mark.usefixtures("verified")

PARAGRAPHS = [
    {"id": "p1", "title": "Vell", "text": "The Vell was bridged by Ada."},
    {"id": "p2", "title": "Mole", "text": "The mole is from Tarn."},
]
ASKED = [
    {"id": "q1", "question": "Who bridged the Vell?", "answers": ["Ada"], "gold": ["p1"]},
    {"id": "q2", "question": "Where is the mole from?", "answers": ["Tarn"], "gold": ["p2"]},
    {"id": "q3", "question": "Who painted the mole?", "answers": ["Bo"], "gold": ["p2"]},
]
SCRIPT = {"name": "s", "questions": {ASKED[0]["question"]: {"answer": "Ada"}, ASKED[1]["question"]: {"answer": "Bo"}}}
"""A model that doesn't know the last question, so that it fails."""

Planned = Callable[..., dict[str, Any]]
Submitted = Callable[..., str]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a corpus, questions and a scripted model."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    write_lines(tmp_path / "questions.jsonl", ASKED)
    index(cotrail, tmp_path, PARAGRAPHS)
    return tmp_path


def index(cotrail: Cotrail, home: Path, paragraphs: list[dict[str, Any]]) -> None:
    indexed = cotrail("index", write_lines(home / "corpus.jsonl", paragraphs), "--name", "sample")
    assert indexed.exit_code == 0, indexed.output


@pytest.fixture
def hands(engine: Engine, home: Path) -> Hands:
    return Hands(engine, home)


@pytest.fixture
def submit(cotrail: Cotrail, home: Path) -> Callable[..., Result]:
    """Submits a run by the command line; options as there."""
    usual = ("--system", "one-step", "--dataset", "jsonl", "--corpus", "sample", "--model", "scripted", "--json")
    return lambda *options: cotrail("submit", *usual, "--questions", home / "questions.jsonl", *options)


@pytest.fixture
def submitted(submit: Callable[..., Result]) -> Submitted:
    """The same; returns the run's id."""

    def submitted(*options: object) -> str:
        done = submit(*options)
        assert done.exit_code == 0, done.output
        return str(json.loads(done.stdout)["run"])

    return submitted


@pytest.fixture
def planned(cotrail: Cotrail) -> Planned:
    """A run's plan as `cotrail plan --json` prints it."""

    def planned(run: str) -> dict[str, Any]:
        printed = cotrail("plan", run, "--json")
        assert printed.exit_code == 0, printed.output
        shown: dict[str, Any] = json.loads(printed.stdout)
        return shown

    return planned


def plan_file(home: Path, text: str) -> Path:
    path = home / "plan.toml"
    path.write_text(text)
    return path


STATED = """
metrics = ["answer_f1", "paragraph_recall"]
hypothesis = "one search is enough"

[comparison]
with = "baseline"
alpha = 0.01
smallest_difference = 0.05
"""


def test_what_is_stated_is_sealed_with_all_that_decides_the_run_and_its_digest_is_printed(
    engine: Engine, home: Path, submit: Callable[..., Result], planned: Planned, query: Query
) -> None:
    printed = json.loads(submit("--plan", plan_file(home, STATED), "--seed", 7).stdout)
    [row] = query(select(runs))
    assert printed["plan"] == plan_digest(row["provenance"][PLAN])
    assert row["provenance"]["files"]["plan"]["path"] == str(home / "plan.toml")
    shown = planned(printed["run"])
    assert (shown["run"], shown["digest"], shown["plan"]) == (printed["run"], printed["plan"], row["provenance"][PLAN])
    assert shown["sealed"].startswith(f"{row['created_at']:%Y-%m-%dT%H:%M}")
    plan = shown["plan"]
    assert plan["metrics"] == ["answer_f1", "paragraph_recall"]
    assert plan["primary"] == "answer_f1"
    assert plan["hypothesis"] == "one search is enough"
    assert plan["comparison"] == {
        "with": ["baseline"],
        "metric": "answer_f1",
        "alpha": 0.01,
        "smallest_difference": 0.05,
    }
    assert plan["binding"]["seed"] == 7
    assert plan["binding"]["corpora"] == {"sample": row["corpus_revision"]}
    assert plan["binding"]["model"] == row["model"]
    assert plan["questions"]["count"] == len(ASKED)
    lines = (json.dumps([each["id"], each["answers"]], separators=(",", ":")) for each in ASKED)
    assert plan["questions"]["answers"] == sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    with engine.connect() as connection:
        assert verify(read_trail(connection, printed["run"])).plan == printed["plan"]


def test_without_a_file_a_plan_of_the_main_metrics_is_sealed(submitted: Submitted, planned: Planned) -> None:
    plan = planned(submitted("--limit", 2))["plan"]
    assert plan["metrics"] == ["answer_em", "answer_f1", "paragraph_recall", "cover_em", "paragraphs_collected"]
    assert plan["primary"] == "answer_em"
    assert (plan["comparison"], plan["hypothesis"], plan["limit"]) == (None, "", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('metric = ["answer_f1"]', "there is no key `metric` (did you mean metrics?)"),
        ('metrics = ["answer_fi"]', "there is no metric 'answer_fi' (did you mean answer_f1?)"),
        ('metrics = ["rouge_l"]', "rouge_l needs what none of the questions publishes"),
        ('metrics = ["answer_f1"]\nprimary = "cover_em"', "reports answer_f1, and not 'cover_em'"),
        ('[comparison]\nwiht = "a"', "there is no key `wiht` in `comparison` (did you mean with?)"),
        ("[comparison]\nalpha = 0.1", "the key `with` in `comparison` is missing"),
        ('[comparison]\nwith = "a"\nalpha = 1.5', "comparison.alpha"),
        ('[comparison]\nwith = "a"\ntest = "bootstrap"', "there is no key `test` in `comparison`"),
        ('[comparison]\nwith = "latest"', "`latest` is another run tomorrow"),
        ("hypothesis = ", "isn't TOML"),
    ],
)
def test_a_plan_that_can_not_be_kept_is_refused_before_anything_is_written(
    text: str, said: str, home: Path, submit: Callable[..., Result], query: Query
) -> None:
    refused = submit("--plan", plan_file(home, text))
    assert said in str(refused.exception)
    assert query(select(runs.c.id)) == []


def test_a_run_as_planned_has_no_deviations_and_its_page_says_so(
    home: Path, submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted("--limit", 2))
    shown = planned(run)
    assert shown["deviations"] == []
    assert shown["remarks"] == ["the plan takes the first 2 questions of the file (limit 2)"]
    assert "Deviations\n  none" in cotrail("plan", run).stdout
    assert cotrail("report", run, "--html", home / "report.html").exit_code == 0
    page = (home / "report.html").read_text()
    assert shown["digest"] in page
    assert "Deviations: none." in page
    assert "(not planned)" not in page


def test_scores_are_printed_with_the_metrics_that_were_planned(
    home: Path, submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    hands.finish(submitted("--plan", plan_file(home, 'metrics = ["answer_f1", "cover_em"]'), "--limit", 2))
    assert "planned: answer_f1, cover_em; answer_f1 decides\n" in cotrail("score", "latest").stdout


def test_a_page_marks_the_metrics_that_the_plan_does_not_report(
    home: Path, submitted: Submitted, hands: Hands, cotrail: Cotrail
) -> None:
    hands.finish(submitted("--plan", plan_file(home, 'metrics = ["answer_f1"]'), "--limit", 2))
    assert cotrail("report", "latest", "--html", home / "report.html").exit_code == 0
    page = (home / "report.html").read_text()
    assert "<span>Answer F1</span>" in page
    assert "<span>Answer EM (not planned)</span>" in page


def test_questions_that_failed_and_were_tried_again_are_named(
    submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted())
    assert planned(run)["deviations"] == ["1 of 3 questions failed, which counts as a wrong answer"]
    assert cotrail("retry", run).exit_code == 0
    again = planned(run)
    assert again["deviations"] == ["1 question had failed and was tried again"]
    assert again["remarks"] == ["1 of 3 questions hasn't ended"]
    hands.finish(run)
    failed, retried = planned(run)["deviations"]
    assert (failed[:6], retried) == ("1 of 3", "1 question had failed and was tried again")


def test_questions_that_were_cancelled_are_named_and_a_pause_is_not(
    submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    run = submitted()
    assert cotrail("pause", run).exit_code == cotrail("resume", run).exit_code == 0
    hands.step(run)
    assert planned(run)["deviations"] == []
    assert cotrail("cancel", run).exit_code == 0
    assert planned(run)["deviations"] == ["3 of 3 questions were cancelled"]
    unasked = submitted()
    assert cotrail("cancel", unasked).exit_code == 0
    assert planned(unasked)["deviations"] == ["3 of 3 questions were cancelled, 3 of them before anything was asked"]


def test_a_limit_of_the_plan_is_no_deviation(
    engine: Engine, submitted: Submitted, planned: Planned, hands: Hands, query: Query
) -> None:
    run = submitted("--run-budget", "steps=2", "--limit", 2)
    first = select(questions.c.id).where(questions.c.key == "q1").scalar_subquery()
    query(update(steps).where(steps.c.question_id == first).values(state="ready").returning(steps.c.id))
    while due := query(select(steps.c.id, steps.c.epoch, steps.c.kind).where(steps.c.state == "ready")):
        [claim] = hands.ledger.claim([Dispatch(*due[0].values())])
        assert claim
        hands.ledger.commit([Completion(claim=claim, outcome=hands.outcome(claim), milliseconds=1)])
    end_all_unbegun(engine)
    shown = planned(run)
    assert shown["plan"]["budgets"] == {"run": {"steps": 2}}
    assert shown["deviations"] == []
    assert "a limit of the plan ended questions: 1 limit: run steps" in shown["remarks"]


def test_a_corpus_that_was_indexed_anew_is_named(
    home: Path, submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted("--limit", 2))
    index(cotrail, home, [*PARAGRAPHS, {"id": "p3", "title": "Bo", "text": "Bo paints."}])
    [deviation] = planned(run)["deviations"]
    assert deviation.startswith("the corpus sample has another revision now, ")
    assert cotrail("corpora", "remove", "sample", "--yes").exit_code == 0
    assert planned(run)["deviations"] == []
    assert planned(run)["remarks"][-1] == "there is no corpus sample here whose revision could be compared"


def test_a_fork_has_a_plan_of_its_own_and_names_what_it_took_over(
    home: Path, submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    origin = hands.finish(submitted("--limit", 2))
    stated = plan_file(home, f'[comparison]\nwith = "{origin}"')
    forked = json.loads(cotrail("fork", origin, "--at", "read", "--plan", stated, "--json").stdout)
    hands.finish(forked["run"])
    shown = planned(forked["run"])
    assert shown["digest"] == forked["plan"] != planned(origin)["digest"]
    assert (shown["plan"]["origin"], shown["plan"]["forked_at"]) == (origin, "read")
    assert shown["plan"]["questions"] == planned(origin)["plan"]["questions"]
    assert shown["deviations"] == [f"2 steps of run {origin} were taken over, recorded before this plan was sealed"]
    one = json.loads(cotrail("fork", origin, "--question", "q2", "--json").stdout)["run"]
    assert planned(one)["plan"]["questions"]["count"] == 1


EXPERIMENT = """
protocol = "compare"
name = "ours"
systems = ["one-step", "no-retrieval"]
models = ["scripted"]

[datasets.mine]
format = "jsonl"
questions = "questions.jsonl"
corpus = "sample"
"""


class LeftError(Exception):
    """The process that conducts an experiment ends here."""


def leave(_: object) -> None:
    raise LeftError


def test_the_runs_of_an_experiment_have_plans_that_name_their_cells(
    engine: Engine, home: Path, submitted: Submitted, planned: Planned, query: Query
) -> None:
    (home / "experiment.toml").write_text(EXPERIMENT)
    experiment = read_experiment_file(home / "experiment.toml")
    schedule = Schedule(experiment, home)
    conductor = conducting.begin(engine, schedule, schedule.plan(), reuse=False)
    with pytest.raises(LeftError):
        conductor.conduct(leave)
    cells = {row["cell"]: row["id"] for row in query(select(runs.c.cell, runs.c.id))}
    assert list(cells) == ["mine/scripted/one-step", "mine/scripted/no-retrieval"]
    for cell, run in cells.items():
        plan = planned(run)["plan"]
        assert (plan["experiment"], plan["cell"]) == ("ours", cell)
        assert plan["questions"]["count"] == len(ASKED)
    named = plan_file(home, '[comparison]\nwith = "ours/mine/scripted/no-retrieval"')
    [waited] = planned(submitted("--plan", named))["deviations"]
    assert waited.endswith("no-retrieval, still has 3 questions to answer")


def test_the_run_to_compare_with_has_to_be_there_to_have_ended_and_to_ask_the_same(
    home: Path, submitted: Submitted, planned: Planned, hands: Hands, cotrail: Cotrail
) -> None:
    run = hands.finish(submitted("--limit", 2, "--plan", plan_file(home, '[comparison]\nwith = "baseline"')))
    assert planned(run)["deviations"] == ["the run to compare with, baseline, isn't there"]
    other = submitted("--name", "baseline")
    assert planned(run)["deviations"] == [
        "the run to compare with, baseline, still has 3 questions to answer",
        "the run to compare with, baseline, has other questions, answers or gold paragraphs",
    ]
    assert cotrail("label", other, "--name", "other").exit_code == 0
    hands.finish(submitted("--name", "baseline", "--limit", 2))
    assert planned(run)["deviations"] == []


@pytest.mark.amends
def test_a_question_that_is_not_as_planned_any_more_is_named(
    submitted: Submitted, planned: Planned, hands: Hands, query: Query
) -> None:
    run = hands.finish(submitted("--limit", 2))
    query(update(questions).where(questions.c.key == "q2").values(answers=["Bo"]).returning(questions.c.id))
    [deviation] = planned(run)["deviations"]
    assert deviation.startswith("the questions' published answers aren't those that were planned: their SHA-256 is ")


def bundle_of(engine: Engine, run: str, path: Path) -> list[bytes]:
    """The lines of a run's bundle."""
    with engine.connect() as connection:
        write_bundle(path, bundle_pieces(read_trail(connection, run), run, __version__), run)
    return [write_record(record) for record in read_bundle(path)]


def forge(lines: list[bytes], table: str, change: Callable[[dict[str, str | None]], None]) -> list[Record]:
    """The records with the last row of a table changed and every digest recomputed, the bundle's own too."""
    records = [read_record(line, number) for number, line in enumerate(lines, start=1)]
    change([record.row for record in records if record.table == table][-1])
    sealed = [read_record(line, n) for n, line in enumerate(resealed(list(map(write_record, records))), start=1)][:-1]
    written = sha256(b"".join(map(write_record, sealed))).hexdigest()
    return [*sealed, end_of(len(sealed), written)]


def test_a_bundle_alone_shows_gold_that_was_forged_with_every_digest(
    engine: Engine, home: Path, submitted: Submitted, hands: Hands
) -> None:
    run = hands.finish(submitted("--limit", 2))
    assert close_runs(engine) == [run]
    lines = bundle_of(engine, run, home / "run.audit.jsonl.zst")
    sound = verify(read_bundle(home / "run.audit.jsonl.zst"), bundled=True)
    assert sound.plan
    assert not sound.findings
    forged = verify(forge(lines, "questions", lambda row: row.update(gold="[]")), bundled=True)
    assert [(each.table, each.column) for each in forged.findings] == [("questions", "gold")]
    assert forged.plan == sound.plan
    other = verify(forge(lines, "runs", lambda row: row.update(dataset="hotpotqa")), bundled=True)
    assert [str(each) for each in other.findings] == [
        f"runs: run {run}, column provenance: changed: the plan of the run has another dataset"
    ]


def test_a_plan_that_was_forged_too_has_another_digest_than_the_published_one(
    engine: Engine, home: Path, submit: Callable[..., Result], hands: Hands, cotrail: Cotrail
) -> None:
    printed = json.loads(submit("--limit", 2).stdout)
    run = hands.finish(printed["run"])
    assert close_runs(engine) == [run]
    lines = bundle_of(engine, run, home / "run.audit.jsonl.zst")

    def rehypothesize(row: dict[str, str | None]) -> None:
        recorded = json.loads(row["provenance"] or "")
        recorded[PLAN]["hypothesis"] = "as I always said"
        row["provenance"] = json.dumps(recorded)

    forged = verify(forge(lines, "runs", rehypothesize), bundled=True)
    assert not forged.findings
    assert forged.plan != printed["plan"]
    shown = cotrail("audit", "verify", home / "run.audit.jsonl.zst", "--plan", printed["plan"])
    assert shown.exit_code == 0
    assert f"plan {printed['plan']}" in shown.stdout
    other = cotrail("audit", "verify", home / "run.audit.jsonl.zst", "--plan", forged.plan)
    assert other.exit_code == 1
    assert f"{forged.plan} was noted down" in "".join(other.stdout.splitlines())


def test_a_run_from_before_plans_says_so_and_verifies(
    engine: Engine, planned: Planned, cotrail: Cotrail, tmp_path: Path
) -> None:
    begin(engine, 1, provenance={"cotrail": "0.0"})
    shown = planned("costless")
    assert (shown["plan"], shown["digest"], shown["deviations"]) == (None, None, [])
    assert "before plans were recorded" in cotrail("plan", "costless").stdout
    assert "plan none: sealed before plans were recorded" in cotrail("audit", "verify", "costless").stdout
    assert cotrail("report", "costless", "--html", tmp_path / "report.html").exit_code == 0
    assert "None: the run was submitted before plans were recorded." in (tmp_path / "report.html").read_text()


def test_prov_has_the_plan_that_the_run_follows(engine: Engine, submitted: Submitted, planned: Planned) -> None:
    run = submitted("--limit", 1)
    with engine.connect() as connection:
        document = provenance(read_trail(connection, run, [find_question(connection, run, "q1")]))
    plan = document["entity"][f"cotrail:plan/{run}"]
    assert plan["prov:type"]["$"] == "prov:Plan"
    assert plan["cotrail:digest"] == planned(run)["digest"]
    assert json.loads(plan["prov:value"]) == planned(run)["plan"]
    derived = document["wasDerivedFrom"].values()
    assert {"prov:generatedEntity": f"cotrail:run/{run}", "prov:usedEntity": f"cotrail:plan/{run}"} in derived
