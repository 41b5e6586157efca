"""Runs are listed in pages, filtered, named and tagged; what they are called is no part of their record."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import settings
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands.control import pause
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.submission import submit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.runs import resolve_run
from cotrail.models.records.runs import Labels, namesakes
from cotrail.services.results.runs import read_filter, read_page
from cotrail.services.runs.labels import label
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, admit_all, ask, close_runs, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

Begun = Callable[..., str]


@pytest.fixture
def begun(engine: Engine) -> Begun:
    """Submits a run of one question under an id; returns the id."""

    def begun(run: str, *, name: str | None = None, tags: tuple[str, ...] = (), **changes: Any) -> str:
        labelled = replace(submission(), id=run, labels=Labels(name=name, tags=tags), **changes)
        return submit(engine, labelled, ask(1), find_system)

    return begun


def listed(engine: Engine, *filters: str) -> list[str]:
    with engine.connect() as connection:
        return [each.run for each in read_page(connection, [read_filter(each) for each in filters]).runs]


def finish_all(engine: Engine) -> None:
    admit_all(engine)
    run_to_end(Ledger(engine, "w@here", LEASE, find_system), unsent(engine))
    close_runs(engine)


def test_pages_follow_one_another_until_every_run_was_listed_once(engine: Engine, begun: Begun) -> None:
    for number in range(5):
        begun(f"run-{number}")
    pages, after = [], None
    with engine.connect() as connection:
        while True:
            page = read_page(connection, limit=2, after=after)
            pages.append(([each.run for each in page.runs], page.more))
            if not page.more:
                break
            after = page.runs[-1].run
    assert pages == [(["run-4", "run-3"], 3), (["run-2", "run-1"], 1), (["run-0"], 0)]


@pytest.mark.amends
def test_runs_submitted_at_the_same_moment_are_all_listed(engine: Engine, begun: Begun, query: Query) -> None:
    for number in range(3):
        begun(f"same-{number}")
    query(text("UPDATE runs SET created_at = '2026-01-01' RETURNING id"))
    with engine.connect() as connection:
        first = read_page(connection, limit=1)
        rest = read_page(connection, after=first.runs[0].run)
    assert [each.run for each in (*first.runs, *rest.runs)] == ["same-2", "same-1", "same-0"]


def test_filters_have_to_hold_all(engine: Engine, begun: Begun) -> None:
    begun("one", name="baseline", tags=("a", "b"))
    begun("two", tags=("b",), binding=replace(submission().binding, corpora={"other": "1"}))
    assert listed(engine, "tag=b") == ["two", "one"]
    assert listed(engine, "tag=b", "tag=a") == ["one"]
    assert listed(engine, "corpus=other") == ["two"]
    assert listed(engine, "name=baseline", "system=ircot", "dataset=jsonl", "model=costless") == ["one"]
    assert listed(engine, "BASE") == ["one"]
    assert listed(engine, "experiment=none") == []


def test_runs_are_filtered_by_how_they_stand(engine: Engine, begun: Begun) -> None:
    begun("ended")
    finish_all(engine)
    begun("waiting")
    begun("open")
    pause(engine, "waiting")
    states = ("running", "paused", "blocked", "finished", "cancelled", "pruned")
    assert {state: listed(engine, f"state={state}") for state in states} == {
        "running": ["open"],
        "paused": ["waiting"],
        "blocked": [],
        "finished": ["ended"],
        "cancelled": [],
        "pruned": [],
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("sytem=ircot", r"no key 'sytem' \(did you mean system\?\); there are: state, system, dataset, corpus, model"),
        ("state=done", "state can't be 'done'; there are: running, paused, blocked, finished, cancelled, pruned"),
        ("state=finishd", r"did you mean finished\?"),
    ],
)
def test_a_filter_that_can_not_be_used_is_answered_with_what_there_is(wanted: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_filter(wanted)


def test_a_run_is_found_by_its_name_unless_others_have_it_too(engine: Engine, begun: Begun) -> None:
    begun("first", name="mine")
    with engine.connect() as connection:
        assert resolve_run(connection, "mine") == "first"
        with pytest.raises(UnknownNameError, match=r"no run 'mien' \(did you mean mine\?\)"):
            resolve_run(connection, "mien")
    begun("fourth", name="a run")
    begun("fifth", name="a run")
    with engine.connect() as connection, pytest.raises(InputError, match="'a run' is the name of fifth, fourth; give"):
        resolve_run(connection, "a run")
    with engine.connect() as connection:
        assert namesakes(connection, "fifth", "a run") == ["fourth"]


@pytest.mark.parametrize("name", ["ircot-20251121-83", "ircot-20251121-838103", "ircot", "i"])
def test_a_name_that_may_be_taken_for_an_id_is_refused(engine: Engine, begun: Begun, name: str) -> None:
    begun("ircot-20251121-838103")
    begun("other")
    for run in ("other", "ircot-20251121-838103"):
        with pytest.raises(InputError, match=f"{name!r} can't be a run's name"):
            label(engine, run, name=name)
        with pytest.raises(InputError, match=f"{name!r} can't be a run's name"):
            begun("third", name=name)
    assert listed(engine) == ["other", "ircot-20251121-838103"]
    assert label(engine, "other", name="20251121").name == "20251121"


@pytest.mark.parametrize("name", ["latest", "Latest", "searchain-20301224-abcdef", "one-step-20301224-abcdef again"])
def test_a_reserved_name_and_one_that_looks_like_an_id_are_refused(engine: Engine, begun: Begun, name: str) -> None:
    begun("run")
    with pytest.raises(InputError, match="can't be a run's name"):
        label(engine, "run", name=name)


def test_what_may_be_several_runs_is_refused_and_they_are_named(
    engine: Engine, begun: Begun, cotrail: Cotrail, query: Query
) -> None:
    """A run was named before another one got an id that begins so."""
    begun("first", name="ircot")
    begun("ircot-20251121-838103")
    begun("other", name="ircot-20251121-838104")
    begun("ircot-20251121-838104")
    either = (
        "'ircot' is the name of first and begins the id of ircot-20251121-838104, ircot-20251121-838103; give an id"
    )
    same = "'ircot-20251121-838104' is the name of other and is the id of ircot-20251121-838104; rename one"
    for command in (["show"], ["cancel"], ["prune", "--yes"]):
        for given, said in (("ircot", either), ("ircot-20251121-838104", same)):
            assert said in str(cotrail(*command, given).exception)
    assert len(listed(engine)) == 4
    assert label(engine, "first", add=["tagged"]).name == "ircot"
    label(engine, "other", name="")
    with engine.connect() as connection:
        assert resolve_run(connection, "ircot-20251121-838104") == "ircot-20251121-838104"


def test_labels_change_after_a_run_is_closed_and_its_record_still_verifies(engine: Engine, begun: Begun) -> None:
    begun("closed", name="old", tags=("a",))
    finish_all(engine)
    labelled = label(engine, "old", name="new", add=["b", "a"], remove=["a"])
    assert (labelled.name, labelled.tags) == ("new", ("b",))
    assert label(engine, "new", name="").name is None
    assert label(engine, "closed").tags == ("b",)
    assert list(prune(engine, ["closed"]))
    assert listed(engine) == []


@pytest.mark.parametrize("given", ["", "latest", "-x", "two\nlines", "x" * 101, " x"])
def test_what_can_not_be_a_tag_is_refused(engine: Engine, begun: Begun, given: str) -> None:
    begun("run")
    with pytest.raises(InputError, match="can't be a run's tag"):
        label(engine, "run", add=[given])


def test_the_command_says_how_many_more_runs_there_are(engine: Engine, begun: Begun, cotrail: Cotrail) -> None:
    for number in range(3):
        begun(f"run-{number}", name=f"n{number}")
    shown = cotrail("runs", "--limit", 1)
    assert "run-2" in shown.stdout
    assert shown.stderr == "2 more runs: --limit, or --after run-2\n"
    assert [each["name"] for each in json.loads(cotrail("runs", "--json", "--after", "n2").stdout)] == ["n1", "n0"]
    assert cotrail("label", "n0", "--tag", "old").stdout == "run-0: n0, #old\n"
    assert json.loads(cotrail("show", "n0", "--json").stdout)["tags"] == ["old"]


def test_a_corpus_is_removed_once_no_run_searches_it(
    engine: Engine, begun: Begun, cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    FolderStore(tmp_path / "corpora").build("costless", [Paragraph(id="p", title="T", text="Text.")])
    begun("searching")
    refused = cotrail("corpora", "remove", "costless", "--yes").exception
    assert isinstance(refused, InputError)
    assert "searched by runs that haven't ended (searching)" in str(refused)
    finish_all(engine)
    assert cotrail("corpora", "remove", "costless", "--yes").stdout == "Removed costless with 1 paragraph.\n"
    assert json.loads(cotrail("corpora", "--json").stdout) == []
    assert not (tmp_path / "corpora" / "costless").exists()


def test_a_corpus_that_a_run_searches_is_replaced_only_by_the_same_paragraphs(
    engine: Engine, begun: Begun, cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    same, other = tmp_path / "same.jsonl", tmp_path / "other.jsonl"
    same.write_text('{"id": "p", "title": "T", "text": "Text."}\n')
    other.write_text('{"id": "p", "title": "T", "text": "Another text."}\n')

    def revision() -> str:
        return str(json.loads(cotrail("corpora", "costless", "--json").stdout)["revision"])

    cotrail("index", same, "--name", "costless")
    former = revision()
    begun("searching", binding=replace(submission().binding, corpora={"costless": former}))
    refused = cotrail("index", other, "--name", "costless")
    assert isinstance(refused.exception, InputError)
    assert "stays as it was: runs that haven't ended search it (searching)" in str(refused.exception)
    assert "search costless (searching)" in refused.stderr
    assert revision() == former
    assert cotrail("index", same, "--name", "costless").exit_code == 0
    assert cotrail("index", other, "--name", "another").exit_code == 0
    FolderStore(tmp_path / "corpora").build("costless", [Paragraph(id="q", title="T", text="Changed by other means.")])
    assert cotrail("index", same, "--name", "costless").exit_code == 0, "what the run needs may come back"
    assert revision() == former
    finish_all(engine)
    assert cotrail("index", other, "--name", "costless").exit_code == 0
    assert revision() != former
