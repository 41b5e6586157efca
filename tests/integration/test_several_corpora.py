"""Runs over several corpora, each with the engine that its index names: from indexing to the record."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.audit.provenance import provenance
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import KINDS
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, System, Together, expect, expect_each
from cotrail.engines.retrieval.engine import ENGINES
from cotrail.errors import CorpusError, InputError, UnknownNameError
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import find_question, read_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.results.runs import read_filter, read_page
from cotrail.services.results.steps import shown_steps
from cotrail.services.runs import forking, submission
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.requests import make_request
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from tests.conftest import Eventually
from tests.extensions.overlap import OVERLAP
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import carry_out_all, unsent

pytestmark = pytest.mark.usefixtures("verified")

QUESTION = "Where does the Vell end?"
CORPORA = {
    "rivers": [{"id": "r", "title": "Vell", "text": "The Vell flows into the Amber Sea."}],
    "seas": [{"id": "s", "title": "Amber Sea", "text": "The Amber Sea has no end."}],
    "notes": [
        {"id": "n", "title": "Vell", "text": "where the vell ends"},
        {"id": "o", "title": "Mole", "text": "Vell"},
    ],
}


class EachSettings(Struct, frozen=True):
    """The corpora that are searched, and the options of a search in the last one."""

    searched: tuple[str, ...] = ("", "rivers", "seas", "notes")
    options: dict[str, Any] = {}


def each_corpus(question: Question, _: Any, settings: EachSettings) -> System:
    """Searches each corpus by its name, and opens a page in the last one."""
    *others, last = settings.searched
    asked = [Retrieve(query=question.text, count=1, corpus=name) for name in others]
    asked.append(Retrieve(query=question.text, count=3, corpus=last, options=settings.options or None))
    results = expect_each((yield Together(tuple(asked))), Retrieved)
    opened = expect((yield Open(title="Vell", corpus=last)), Retrieved)
    found = tuple(paragraph for each in (*results, opened) for paragraph in each.paragraphs)
    return Answer(text=" ".join(paragraph.id for paragraph in found), paragraphs=found)


SPEC = SystemSpec(
    name="each-corpus",
    version=1,
    title="Each",
    settings=EachSettings,
    open=each_corpus,
    needs=lambda _: Needs(corpus=True),
)
find = partial(find_spec, (SPEC,))


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two corpora of tantivy's and one of a made-up engine's."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setitem(ENGINES, "overlap", OVERLAP)
    for module in ("configuring", "submission", "forking"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find)
    (tmp_path / "models.toml").write_text('[models.silent]\nengine = "scripted"\npath = "silent.json"\n')
    (tmp_path / "silent.json").write_text('{"name": "silent", "questions": {}, "default": {"answer": "x"}}')
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION, "answers": ["r"]}))
    for name, lines in CORPORA.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        engine = ("--engine", "overlap", "--set", "folds=true") if name == "notes" else ()
        indexed = cotrail("index", tmp_path / f"{name}.jsonl", "--name", name, *engine)
        assert indexed.exit_code == 0, indexed.output
    return tmp_path


def request(home: Path, **changes: Any) -> dict[str, Any]:
    usual = {
        "system": "each-corpus",
        "dataset": "jsonl",
        "questions": str(home / "questions.jsonl"),
        "corpora": ["rivers", "seas", "notes"],
        "model": "silent",
    }
    return {key: value for key, value in (usual | changes).items() if value is not None}


def begin(engine: Engine, home: Path, **changes: Any) -> str:
    return submission.submit(engine, submission.prepare(make_request(request(home, **changes))))


def work(engine: Engine, sent: list[Dispatch], query: Query, eventually: Eventually, run: str) -> dict[str, Any]:
    """Carries out what a worker is sent, until the run's question has ended; returns how."""
    for kind in KINDS:
        sent += unsent(engine, kind)
    ended = select(questions.c.status, questions.c.answer, questions.c.reason).where(questions.c.run_id == run)
    carry_out_all(sent, lambda: query(ended)[0]["status"] != "open", eventually)
    return query(ended)[0]


def test_each_corpus_is_searched_by_its_name_with_its_own_engine(
    engine: Engine,
    home: Path,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    cotrail: Cotrail,
) -> None:
    run = begin(engine, home)
    # The first corpus twice, by default and by name; of the notes, "vell" and "the" count more than "vell" alone.
    assert work(engine, sent, query, eventually, run)["answer"] == "r r s n o n"
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find)] == [""]
        traced = read_question(connection, run, "q")
        document = provenance(read_trail(connection, run, [find_question(connection, run, "q")]))
        record = read_run(connection, run)
    revisions = {name: each.revision for name, each in corpora_of(settings()).manifests().items()}
    assert record.corpora == {name: revisions[name] for name in CORPORA}
    assert next(iter(record.corpora)) == "rivers"
    assert [step.view.source for step in shown_steps(traced)] == [None, "rivers", "seas", "notes", "notes"]
    labels = {name: each.get("prov:label") for name, each in document["agent"].items()}
    agents = {"corpus_revision": "rivers", "corpus/seas": "seas", "corpus/notes": "notes"}
    assert labels.items() >= {f"cotrail:agent/{agent}": revisions[name] for agent, name in agents.items()}.items()
    shown = [value.partition(",")[0] for name, value in configuration(record) if name == "corpus"]
    assert shown == ["rivers", "notes", "seas"]
    assert "seas" in cotrail("trace", run, "q").output
    with engine.connect() as connection:
        assert [each.run for each in read_page(connection, [read_filter("corpus=seas")]).runs] == [run]


def test_the_options_of_a_search_are_the_engines_own(
    engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    run = begin(engine, home, settings={"searched": ["notes"], "options": {"at_least": 3}})
    assert work(engine, sent, query, eventually, run)["answer"] == "n n"
    recorded = query(select(steps.c.request).where(steps.c.run_id == run).order_by(steps.c.sequence))[0]["request"]
    assert (recorded["options"], recorded["corpus"]) == ({"at_least": 3}, "notes")
    other = begin(engine, home, settings={"searched": ["seas"], "options": {"at_least": 3}})
    ended = work(engine, sent, query, eventually, other)
    assert "no option 'at_least'" in ended["reason"]["message"]


def test_a_corpus_that_the_run_lacks_blocks_it_and_says_so(
    engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    run = begin(engine, home, corpora=["rivers", "seas"])
    ended = work(engine, sent, query, eventually, run)
    assert ended["status"] == "blocked"
    assert "'notes', and the run has only rivers, seas" in ended["reason"]["message"]


def test_a_fork_keeps_the_corpora(engine: Engine, home: Path, here: Runtime, query: Query) -> None:
    origin = begin(engine, home)
    fork = forking.fork(engine, ForkRequest(run=origin, changes={"seed": 3})).run
    pinned = runs.c.corpus, runs.c.corpus_revision, runs.c.knowledge
    rows = [query(select(*pinned).where(runs.c.id == run))[0] for run in (origin, fork)]
    assert rows[0] == rows[1]
    assert rows[0]["knowledge"].keys() == {"corpus/notes", "corpus/seas"}


def test_one_corpus_is_recorded_as_before_there_were_several(engine: Engine, home: Path, query: Query) -> None:
    run = begin(engine, home, corpora=None, corpus="rivers")
    [row] = query(select(runs.c.corpus, runs.c.knowledge, runs.c.provenance).where(runs.c.id == run))
    assert (row["corpus"], row["knowledge"]) == ("rivers", {})
    assert row["provenance"]["request"]["corpus"] == "rivers"
    assert "corpora" not in row["provenance"]["request"]


def test_options_and_run_files_name_several(engine: Engine, home: Path, cotrail: Cotrail, query: Query) -> None:
    keys = request(home, corpora=["seas", "rivers"])
    (home / "run.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
    for options, first in (
        ((), "seas"),
        (("--corpus", "rivers", "--corpus", "notes"), "rivers"),
        (("--corpus", "notes"), "notes"),
    ):
        submitted = cotrail("submit", home / "run.toml", *options, "--json")
        assert submitted.exit_code == 0, submitted.output
        run = json.loads(submitted.stdout)["run"]
        assert query(select(runs.c.corpus).where(runs.c.id == run)) == [{"corpus": first}]
    with pytest.raises(InputError, match="give one of the two"):
        make_request(request(home, corpus="rivers"))


def test_a_corpus_is_not_removed_while_a_run_searches_it_beside_others(
    engine: Engine, home: Path, cotrail: Cotrail
) -> None:
    begin(engine, home)
    assert isinstance(cotrail("corpora", "remove", "seas", "--yes").exception, InputError)


def test_a_manifest_names_the_engine_its_format_and_settings(home: Path, cotrail: Cotrail) -> None:
    listed = {each["corpus"]: each["engine"] for each in json.loads(cotrail("corpora", "--json").output)}
    assert listed == {"notes": "overlap", "rivers": "tantivy", "seas": "tantivy"}
    path = home / "corpora" / "notes" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert (manifest["engine"], manifest["format"], manifest["settings"]) == ("overlap", 2, {"folds": True})
    assert manifest["created_by"].keys() == {"cotrail", "msgspec"}
    revision = corpora_of(settings()).open("notes").revision
    cotrail("index", home / "notes.jsonl", "--name", "notes", "--engine", "overlap", "--set", "folds=false")
    assert corpora_of(settings()).open("notes").revision != revision
    for changed, reason in ({"format": 1}, "another version"), ({"engine": "gone"}, "gone"):
        path.write_text(json.dumps(manifest | changed))
        with pytest.raises(CorpusError, match=reason):
            corpora_of(settings()).open("notes")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (["--engine", "tantvy"], UnknownNameError, "did you mean tantivy"),
        (["--engine", "elasticsearch"], UnknownNameError, "COTRAIL_SEARCH_URL"),
        (["--engine", "overlap", "--set", "fold=true"], InputError, "folds"),
        (["--set", "folds=true"], InputError, "settings of tantivy"),
    ],
)
def test_an_index_is_refused_by_what_its_engine_does_not_take(
    options: list[str], error: type[Exception], said: str, home: Path, cotrail: Cotrail
) -> None:
    refused = cotrail("index", home / "notes.jsonl", "--name", "other", *options).exception
    assert isinstance(refused, error)
    assert said in str(refused)
    assert not (home / "corpora" / "other").exists()
