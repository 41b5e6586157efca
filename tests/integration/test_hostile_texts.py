"""A run whose every text commands terminals: questions, paragraphs, what the model wrote, errors, notes."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine
from typer.testing import Result

from benchmarks.contenders.cotrail import submission
from cotrail.cli.main import main
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, close_runs, unsent
from tests.unit.test_printable import is_safe

Cotrail = Callable[..., Result]

FORGED = "\n 9 read\n   gold  forged"
HOSTILE = f"x\x1b[2J\x1b]52;c;Zg==\x07\x9b31m\x7f\x85\u2028\u202e{FORGED} שלום\u2067"
RUN = "hostile"


@pytest.fixture
def run(engine: Engine) -> str:
    """A run of two such questions, of which the second fails."""
    gold = (GoldParagraph(title=HOSTILE, text=HOSTILE),)
    asked = [Question(id=f"{number}{HOSTILE}", text=HOSTILE, answers=(HOSTILE,), gold=gold) for number in range(2)]
    hostile = replace(submission(), id=RUN, model_name=HOSTILE)
    hostile = replace(hostile, binding=replace(hostile.binding, corpora={HOSTILE: "1"}))
    submit(engine, replace(hostile, provenance={"cotrail": HOSTILE, "git": HOSTILE}), asked, find_system)
    ledger = Ledger(engine, f"w{HOSTILE}", LEASE, find_system)
    first, second = unsent(engine)
    [claim] = ledger.claim([second])
    assert claim is not None
    ledger.commit([Completion(claim=claim, outcome=Failure(type="Broken", message=HOSTILE), milliseconds=1)])
    messages: Sequence[Dispatch] = [first]
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [Completion(claim=each, outcome=_outcome(each), milliseconds=1) for each in claims]
        messages = [message for following in ledger.commit(done) for message in following]
    assert close_runs(engine) == [RUN]
    return RUN


def _outcome(claim: Claim) -> Retrieved | Generated:
    action = claim.action
    if isinstance(action, Retrieve):
        paragraphs = [Paragraph(id=f"{n}{HOSTILE}", title=f"{HOSTILE}{n}", text=f"{HOSTILE}{n}") for n in range(3)]
        return Retrieved(hits=tuple(Hit(paragraph=each, rank=n, score=1.0) for n, each in enumerate(paragraphs)))
    assert isinstance(action, Reason | Read)
    written = f"{HOSTILE} so the answer is: {HOSTILE}."
    return Generated(
        text=written,
        raw=written,
        demonstrations=len(action.prompt.demonstrations.items),
        paragraphs=len(action.prompt.paragraphs),
        prompt_digest=action.prompt.digest,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
    )


@pytest.mark.parametrize(
    "command",
    [
        "runs",
        "show RUN",
        "trace RUN 1",
        "trace RUN 1 --full",
        "trace RUN 2",
        "score RUN",
        "watch RUN",
        "replay RUN",
        "audit verify RUN",
        "annotate RUN --annotator me",
        "retry RUN",
    ],
)
def test_what_is_printed_of_it_commands_no_terminal_and_forges_no_line(
    command: str, run: str, cotrail: Cotrail
) -> None:
    said = cotrail(*(run if word == "RUN" else word for word in command.split(" ")))
    assert isinstance(said.exception, None | SystemExit)
    assert is_safe(said.output)
    assert not re.search("^( 9 read|   gold  forged)", said.output, re.MULTILINE)


@pytest.mark.parametrize(
    "command", ["runs", "show RUN", "trace RUN 1", "trace RUN 2", "score RUN", "watch RUN", "audit verify RUN"]
)
def test_json_of_it_is_exact_and_commands_no_terminal(command: str, run: str, cotrail: Cotrail) -> None:
    said = cotrail(*(run if word == "RUN" else word for word in command.split(" ")), "--json").stdout
    assert is_safe(said)
    if command.startswith("trace"):
        assert json.loads(said)["question"] == HOSTILE


@pytest.mark.usefixtures("cotrail")
@pytest.mark.parametrize(
    "arguments",
    [
        ["trace", RUN, f"no{HOSTILE}"],
        ["show", HOSTILE],
        ["pause", "\x9b31m\ud800"],
        ["rethink", f"/{HOSTILE}"],
        [f"command{HOSTILE}"],
        ["index", "missing\udcff.jsonl", "--name", "x"],
    ],
)
def test_errors_that_quote_command_no_terminal(
    arguments: Sequence[str], run: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cotrail", *arguments])
    with pytest.raises(SystemExit):
        main()
    said = capfd.readouterr().err
    assert is_safe(said)
    assert said.startswith("cotrail: ")
    assert said.count("\n") - said.count("\nSee https:") == 1


@pytest.mark.parametrize("form", ["jsonl", "hotpotqa", "musique"])
def test_an_export_of_it_is_exact_and_commands_no_terminal(form: str, run: str, cotrail: Cotrail) -> None:
    said = cotrail("export", run, "--format", form).stdout
    assert is_safe(said)
    assert f"0{HOSTILE}" in strings(json.loads(said.splitlines()[0]))


def test_fields_of_rankings_of_it_are_still_fields(run: str, cotrail: Cotrail) -> None:
    for form, fields in (("trec", 6), ("trec-steps", 6), ("qrels", 4)):
        said = cotrail("export", run, "--format", form).stdout
        assert is_safe(said)
        assert {len(line.split()) for line in said.splitlines()} == {fields}
        topic, _, document, *_ = said.split()
        assert unquote(topic.rpartition(".")[0] if form == "trec-steps" else topic) == f"0{HOSTILE}"
        assert unquote(document) == f"0{HOSTILE}" or document.startswith("unknown-")


def strings(value: object) -> Iterator[str]:
    """All the strings of a JSON value, keys among them."""
    match value:
        case str():
            yield value
        case list() | dict():
            for part in value if isinstance(value, list) else [*value, *value.values()]:
                yield from strings(part)


def test_a_page_of_it_holds_nothing_that_a_browser_would_obey(run: str, cotrail: Cotrail, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert is_safe(page.read_text("utf-8"))
