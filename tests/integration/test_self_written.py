"""Demonstrations from the chains of a run: zero-shot chains by hand, clustered, and shown by Auto-CoT."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from cotrail.configuration.settings import settings
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.data.demonstrations.sets import read_demonstrations
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import InputError
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import steps
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.submission import prepare
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail
from tests.integration.stepping import admit_all

pytestmark = pytest.mark.usefixtures("verified")

TOWNS = ("Brenn", "Holm", "Vell", "Ysborg")
"""The towns that are asked about; the questions about the first two are alike, and so are the other two."""

Submit = Callable[..., str]


def asked(town: str) -> str:
    return f"Where is {town}?"


@pytest.fixture
def folder(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with questions, and with a model and an embedder that follow scripts."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    home = tmp_path
    lines = (json.dumps({"id": town, "question": asked(town), "answers": ["Ostmark"]}) for town in TOWNS)
    (home / "train.jsonl").write_text("\n".join(lines))
    # The chain about Holm is no demonstration: it breaks off.
    chains = {town: f"{town} is a town.\nIt is in Ostmark{'' if town == 'Holm' else '.'}" for town in TOWNS}
    questions = {asked(town): {"answer": "Ostmark", "messages": [chain, "Ostmark."]} for town, chain in chains.items()}
    (home / "written.json").write_text(json.dumps({"name": "written", "questions": questions}))
    alike = {asked(one): {asked(other): 0.9} for one, other in (TOWNS[:2], TOWNS[2:])}
    (home / "alike.json").write_text(json.dumps({"similarities": alike}))
    (home / "models.toml").write_text(
        '[models.written]\nengine = "scripted"\npath = "written.json"\n'
        '[embedders.alike]\nengine = "scripted"\npath = "alike.json"\n'
    )
    return home


@pytest.fixture
def submitted(engine: Engine, folder: Path) -> Submit:
    def submitted(**keys: Any) -> str:
        questions = str(folder / "train.jsonl")
        request = make_request({"dataset": "jsonl", "questions": questions, "model": "written"} | keys)
        prepared = prepare(request)
        submit(engine, prepared.submission, prepared.questions, find_system)
        return prepared.submission.id

    return submitted


def finish(engine: Engine, run: str, model: ScriptedModel) -> None:
    ledger = Ledger(engine, "hands@here", 30, find_system)

    def carried_out(claim: Claim) -> Completion:
        action: Any = claim.action
        written = model.generate(GenerationRequest(action.prompt, action.until, action.max_tokens))
        return Completion(claim=claim, outcome=written, milliseconds=1.0)

    while True:
        admit_all(engine)
        with engine.connect() as connection:
            ready = select(steps.c.id, steps.c.epoch, steps.c.kind)
            rows = connection.execute(ready.where(steps.c.run_id == run, steps.c.state == "ready")).all()
        if not rows:
            return
        claims = [claim for claim in ledger.claim([Dispatch(*row) for row in rows]) if claim is not None]
        ledger.commit([carried_out(claim) for claim in claims])


def test_each_cluster_of_a_run_gives_a_demonstration(
    engine: Engine, cotrail: Cotrail, folder: Path, submitted: Submit
) -> None:
    run, output = submitted(system="zero-shot-chain-of-thought"), folder / "demonstrations.txt"
    command = ("demonstrations", "from-run", run, "--output", output, "--embedder", "alike")
    assert "isn't finished" in str(cotrail(*command, "--number", 2).exception)
    finish(engine, run, ScriptedModel(folder / "written.json", "written"))
    assert "8 clusters need as many" in str(cotrail(*command).exception)
    [written] = json.loads(cotrail(*command, "--number", 2, "--json").stdout)["files"]
    assert (written["run"], written["questions"], written["demonstrations"]) == (run, 4, 2)
    items = {each.id: each for each in read_demonstrations(output).items}
    assert items.keys() == {"Brenn", "Vell"}
    assert items["Vell"].answer == (
        "Let's think step by step. Vell is a town. It is in Ostmark. The answer is Ostmark."
    )
    again = cotrail(*command, "--number", 2)
    assert "Wrote 2 demonstrations of 4 questions" in again.output
    prepared = prepare(
        make_request(
            {
                "system": "auto-cot",
                "dataset": "jsonl",
                "questions": str(folder / "train.jsonl"),
                "model": "written",
                "demonstrations": str(output),
            }
        )
    )
    assert {each.id for each in prepared.submission.shots[AnswerForm.COT].items} == {"Brenn", "Vell"}


def test_a_run_of_another_system_is_refused(cotrail: Cotrail, submitted: Submit, folder: Path) -> None:
    run = submitted(system="direct")
    refused = cotrail("demonstrations", "from-run", run, "--output", folder / "d.txt")
    assert isinstance(refused.exception, InputError)
    assert "name one of zero-shot-chain-of-thought" in str(refused.exception)
