"""A step that needs an engine which its system declares nowhere."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.configuration.settings import Settings
from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.encoders import EMBEDDER, ENTAILER, EXTRACTOR, RELEVANCE_RATER
from cotrail.core.ports.role import BatchedRole
from cotrail.core.questions import Paragraph
from cotrail.core.replay import SystemBrokenError
from cotrail.core.system import Action
from cotrail.models.records.runs import RunPlan
from cotrail.tasks.engines import LoadedEngines, StepEngines
from tests.replay.driving import BINDING

PAGE = Paragraph(id="p", title="T", text="Text.")
RUN = RunPlan(
    id="run",
    system="forgetful",
    system_version=1,
    settings={},
    shots={},
    binding=replace(BINDING, corpora={}),
    model_name="scripted",
    embedder_name="",
    entailer_name="",
    batched=False,
    shared_in=None,
)


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (lambda engines: engines.retriever(), "add corpus=True,"),
        (lambda engines: engines.knowledge("wordnet"), 'add knowledge=("wordnet",),'),
        (lambda engines: engines.language_model("judge"), "add engines=(JUDGE,),"),
    ],
)
def test_it_says_what_is_to_be_declared(ask: Callable[[StepEngines], object], missing: str, tmp_path: Path) -> None:
    engines = StepEngines(LoadedEngines(Settings(home=tmp_path)), RUN, Cancellation())
    with pytest.raises(SystemBrokenError, match=re.escape(missing)):
        ask(engines)


@pytest.mark.parametrize(
    ("role", "action"),
    [
        (EMBEDDER, Embed(sentences=("A.",))),
        (ENTAILER, Entail(premise=PAGE, hypothesis="A.")),
        (EXTRACTOR, Extract(question="A?", paragraph=PAGE)),
        (RELEVANCE_RATER, Rate(by="relevance", text="A")),
    ],
)
def test_so_it_does_of_a_role(role: BatchedRole[Any, Any, Any], action: Action, tmp_path: Path) -> None:
    engines = StepEngines(LoadedEngines(Settings(home=tmp_path)), RUN, Cancellation())
    with pytest.raises(SystemBrokenError, match=re.escape(f"add engines=({role.name.upper()},),")):
        engines.ask(role, action)
