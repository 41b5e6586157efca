"""Runs that open pages, rate and extract: from their submission to forks, with scripted engines that they name."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.audit.provenance import provenance
from cotrail.core.actions.embed import Rate
from cotrail.core.actions.entail import Extract
from cotrail.core.actions.registry import KINDS
from cotrail.core.actions.retrieve import Open
from cotrail.core.ports.encoders import DUPLICATE_RATER, EXTRACTOR, RELEVANCE_RATER
from cotrail.core.questions import Question
from cotrail.core.results import Extracted, Rated, Retrieved
from cotrail.core.system import Answer, System, Together, expect, expect_each
from cotrail.errors import InputError, UnavailableError
from cotrail.models.queries.progress import read_outages
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import find_question, read_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import attempts, questions, runs, steps
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.runs import forking, submission
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.requests import make_request
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent

pytestmark = pytest.mark.usefixtures("verified")

QUESTION, EARLIER = "Where does the Vell end?", "Which sea does the Vell flow into?"
PAGE = ["The Vell is a river of Ostmark.", "It flows into the Amber Sea."]
MODELS = "".join(
    f'[{table}.{name}]\nengine = "scripted"\npath = "{name}.json"\n\n'
    for table, name in [
        ("models", "silent"),
        ("extractors", "reader"),
        ("extractors", "other"),
        ("raters", "twins"),
        ("raters", "relevant"),
    ]
)
SCRIPTS: dict[str, Any] = {
    "silent": {"name": "silent", "questions": {}, "default": {"answer": "x"}},
    "reader": {"answers": {QUESTION: {PAGE[1]: {"text": "Amber Sea", "confidence": 2.5}}}},
    "other": {"answers": {QUESTION: {PAGE[1]: {"text": "Amber", "confidence": 0.5}}}},
    "twins": {"scores": {QUESTION: {EARLIER: 0.9}}},
    "relevant": {"scores": {QUESTION: {PAGE[0]: -1.0, PAGE[1]: 7.0}}},
}
NAMED = {"extractor": "reader", "duplicate_rater": "twins", "relevance_rater": "relevant"}


class PageSettings(Struct, frozen=True):
    """The page that is opened, and whether the question is compared with an earlier one."""

    title: str = "Vell"
    compares: bool = True


def page_reading(question: Question, _: Any, settings: PageSettings) -> System:
    """Reads the answer out of the best paragraph of a page."""
    page = expect((yield Open(title=settings.title)), Retrieved).paragraphs
    if not page:
        return Answer(text="no such page")
    asked = [Rate(by="relevance", text=question.text, paragraphs=page)]
    if settings.compares:
        asked.append(Rate(by="duplicate", text=question.text, others=(EARLIER,)))
    relevance, *_ = expect_each((yield Together(tuple(asked))), Rated)
    best = page[relevance.scores.index(max(relevance.scores))]
    read = expect((yield Extract(question=question.text, paragraph=best)), Extracted)
    return Answer(text=read.text, paragraphs=(best,))


def run_needs(settings: PageSettings) -> Needs:
    compared = (DUPLICATE_RATER,) if settings.compares else ()
    return Needs(corpus=True, engines=(EXTRACTOR, *compared, RELEVANCE_RATER))


SPEC = SystemSpec(
    name="page-reading", version=1, title="Pages", settings=PageSettings, open=page_reading, needs=run_needs
)
NEEDLESS = SystemSpec(
    name="needless", version=1, title="-", settings=PageSettings, open=page_reading, needs=lambda _: Needs(corpus=True)
)
find = partial(find_spec, (SPEC, NEEDLESS))


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with scripted engines and a corpus of two pages, to submit runs of the system from."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    for module in ("configuring", "submission", "forking"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find)
    (tmp_path / "models.toml").write_text(MODELS)
    for name, script in SCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(script))
    page = [{"id": str(n), "title": "Vell", "text": text} for n, text in enumerate(PAGE, start=1)]
    lines = [*page[::-1], {"id": "0", "title": "Vell (film)", "text": "A film."}]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION, "answers": ["Amber Sea"]}))
    assert cotrail("index", tmp_path / "corpus.jsonl", "--name", "rivers").exit_code == 0
    return tmp_path


def request(home: Path, **changes: Any) -> dict[str, Any]:
    usual = {
        "system": "page-reading",
        "dataset": "jsonl",
        "questions": str(home / "questions.jsonl"),
        "corpus": "rivers",
        "model": "silent",
        **NAMED,
    }
    return {key: value for key, value in (usual | changes).items() if value is not None}


def begin(engine: Engine, home: Path, **changes: Any) -> str:
    return submission.submit(engine, submission.prepare(make_request(request(home, **changes))))


def work(engine: Engine, sent: list[Dispatch], query: Query, eventually: Eventually, run: str) -> None:
    """Carries out what a worker is sent, until the run's question has ended."""
    for kind in KINDS:
        sent += unsent(engine, kind)

    def ended() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return query(select(questions.c.status).where(questions.c.run_id == run)) != [{"status": "open"}]

    eventually(ended, "the question has ended")


def recorded(query: Query, run: str) -> list[tuple[str, Any, bool]]:
    """Each step's kind and result, and whether it was taken over from another run."""
    asked = select(steps.c.kind, steps.c.result, steps.c.adopted_from).where(steps.c.run_id == run)
    rows = query(asked.order_by(steps.c.sequence))
    return [(row["kind"], row["result"], row["adopted_from"] is not None) for row in rows]


def answer(query: Query, run: str) -> dict[str, Any]:
    [row] = query(select(questions.c.status, questions.c.answer).where(questions.c.run_id == run))
    return row


@pytest.fixture
def done(engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually) -> str:
    """A run that is finished."""
    run = begin(engine, home)
    work(engine, sent, query, eventually, run)
    return run


def test_a_page_is_opened_rated_and_read(done: str, query: Query) -> None:
    assert answer(query, done) == {"status": "finished", "answer": "Amber Sea"}
    opened, *others = recorded(query, done)
    assert (opened[0], opened[1]["hits"]) == ("open", 2)
    assert others == [
        ("rate", {"scores": [-1.0, 7.0]}, False),
        ("rate", {"scores": [0.9]}, False),
        ("extract", {"text": "Amber Sea", "confidence": 2.5, "start": 18, "end": 27}, False),
    ]
    [row] = query(select(runs.c.knowledge).where(runs.c.id == done))
    assert {role: pin.split("@")[0] for role, pin in row["knowledge"].items()} == NAMED


def test_the_record_replays_and_is_traced_and_told_in_prov(done: str, engine: Engine, cotrail: Cotrail) -> None:
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, done, find)] == [""]
        traced = read_question(connection, done, "q")
        document = provenance(read_trail(connection, done, [find_question(connection, done, "q")]))
        record = read_run(connection, done)
    opened, *_, read = traced.steps
    assert [(hit.rank, hit.paragraph.text, hit.score) for hit in opened.hits] == [(1, PAGE[0], 1.0), (2, PAGE[1], 1.0)]
    assert opened.query == "Vell"
    assert isinstance(read.action, Extract)
    assert (read.action.question, read.action.paragraph.text) == (QUESTION, PAGE[1])
    labels = {name: each.get("prov:label") for name, each in document["agent"].items()}
    assert labels.items() >= {f"cotrail:agent/{role}": pin for role, pin in record.knowledge.items()}.items()
    shown = dict(configuration(record))
    assert shown["extractor"].startswith("reader@")
    assert shown["duplicate rater"].startswith("twins@")
    assert "knowledge" not in shown
    told = cotrail("trace", done, "q").output
    assert "Vell" in told
    assert "relevance  “Where does the Vell end?”" in told
    assert "7.00  Vell" in told
    assert "0.90  Which sea does the Vell flow into?" in told
    assert "   Amber Sea\n   confidence 2.50, in Vell" in told


def test_the_report_shows_the_page_and_the_answer(done: str, cotrail: Cotrail, tmp_path: Path) -> None:
    assert cotrail("report", done, "--html", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "opened “<bdi>Vell</bdi>”" in page
    assert "confidence 2.50, in Vell" in page


def test_an_unknown_title_finds_nothing(
    engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    run = begin(engine, home, settings={"title": "vell"})
    work(engine, sent, query, eventually, run)
    assert answer(query, run) == {"status": "finished", "answer": "no such page"}


def test_a_fork_with_another_reader_reads_anew_and_takes_the_rest_over(
    done: str, engine: Engine, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    forked = forking.fork(engine, ForkRequest(run=done, changes={"extractor": "other"}))
    assert forked.adopted == 3
    work(engine, sent, query, eventually, forked.run)
    assert [(kind, taken) for kind, _, taken in recorded(query, forked.run)] == [
        ("open", True),
        ("rate", True),
        ("rate", True),
        ("extract", False),
    ]
    assert answer(query, forked.run)["answer"] == "Amber"
    with engine.connect() as connection:
        origin, fork = (read_run(connection, run).knowledge for run in (done, forked.run))
    assert fork["extractor"].startswith("other@")
    assert fork | {"extractor": origin["extractor"]} == origin


def test_a_fork_whose_settings_need_fewer_engines_pins_fewer(
    done: str, engine: Engine, query: Query, home: Path
) -> None:
    forked = forking.fork(engine, ForkRequest(run=done, changes={"compares": False}))
    [row] = query(select(runs.c.knowledge).where(runs.c.id == forked.run))
    assert row["knowledge"].keys() == {"extractor", "relevance_rater"}
    with pytest.raises(InputError, match="needs no duplicate_rater"):
        forking.fork(engine, ForkRequest(run=done, changes={"compares": False, "duplicate_rater": "twins"}))


@pytest.mark.parametrize(("role", "kind"), [("extractor", "extract"), ("relevance_rater", "rate")])
def test_a_worker_with_another_engine_than_the_pinned_one_blocks_the_step(
    role: str,
    kind: str,
    engine: Engine,
    home: Path,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
) -> None:
    run = begin(engine, home)
    (home / f"{NAMED[role]}.json").write_text("{}")
    work(engine, sent, query, eventually, run)
    assert answer(query, run)["status"] == "blocked"
    blocked = query(select(steps.c.kind, attempts.c.error).join(attempts).where(attempts.c.outcome == "blocked"))
    assert [(row["kind"], row["error"]["type"]) for row in blocked] == [(kind, "ModelChangedError")]
    assert f"submitted with the model {NAMED[role]}@" in blocked[0]["error"]["message"]


def test_an_outage_is_told_by_the_engine(
    engine: Engine,
    home: Path,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = begin(engine, home)

    def away(self: Any, batch: Any) -> Any:
        raise UnavailableError("it can't read now")

    monkeypatch.setattr("cotrail.engines.extraction.extractors.ScriptedExtractor.extract", away)
    sent += unsent(engine, "open")

    def held() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return bool(query(select(attempts.c.outcome).where(attempts.c.outcome == "unavailable")))

    eventually(held, "the step is held back")
    with engine.connect() as connection:
        [outage] = read_outages(connection, run)
    assert (outage.what, outage.message, outage.steps) == ("the extractor", "it can't read now", 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"extractor": None},
            r"page-reading reads answers .*: name its `extractor`, .* `\[extractors.NAME\]` of models",
        ),
        ({"duplicate_rater": None}, r"finds questions .*: name its `duplicate_rater`, .* `\[raters.NAME\]`"),
        ({"relevance_rater": None}, "scores how far texts answer: name its `relevance_rater`"),
        ({"settings": {"compares": False}}, "page-reading needs no duplicate_rater: name none"),
        ({"system": "needless", **dict.fromkeys(NAMED), "extractor": "reader"}, "needless needs no extractor"),
        ({"extractor": "twins"}, "there is no extractor 'twins'; there are: dpr-reader-multiset, "),
        ({"relevance_rater": "reader"}, "there is no rater 'reader'"),
        ({"corpus": None}, "searches a corpus; name one with --corpus"),
    ],
)
def test_a_run_that_names_too_little_or_too_much_is_refused(changes: dict[str, Any], said: str, home: Path) -> None:
    with pytest.raises(InputError, match=said):
        submission.prepare(make_request(request(home, **changes)))


def test_the_command_names_engines_as_a_run_file_does(home: Path, cotrail: Cotrail, query: Query) -> None:
    keys = {key: value for key, value in request(home).items() if key not in NAMED}
    (home / "run.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
    options = ["--extractor", "other", "--duplicate-rater", "twins", "--relevance-rater", "relevant"]
    submitted = cotrail("submit", home / "run.toml", *options)
    assert submitted.exit_code == 0, submitted.output
    [row] = query(select(runs.c.knowledge, runs.c.corpus))
    assert row["knowledge"]["extractor"].startswith("other@")
    assert row["corpus"] == "rivers"
