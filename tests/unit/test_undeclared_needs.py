"""A step that needs an engine which its system declares nowhere."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from cotrail.configuration.settings import Settings
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.extract import Extract
from cotrail.core.actions.rate import Rate
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.replay import SystemBrokenError
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
    shared_in=None,
)


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (lambda engines: engines.retriever(), "add corpus=True,"),
        (lambda engines: engines.knowledge("wordnet"), 'add knowledge=("wordnet",),'),
        (lambda engines: engines.compare(Embed(sentences=("A.",))), "add weighs=True,"),
        (lambda engines: engines.judge(Entail(premise=PAGE, hypothesis="A.")), "add weighs=True,"),
        (lambda engines: engines.extract(Extract(question="A?", paragraph=PAGE)), "add extracts=True,"),
        (
            lambda engines: engines.rate("relevance", Rate(by="relevance", text="A")),
            'add rates=frozenset({"relevance"}),',
        ),
    ],
)
def test_it_says_what_is_to_be_declared(ask: Callable[[StepEngines], object], missing: str, tmp_path: Path) -> None:
    engines = StepEngines(LoadedEngines(Settings(home=tmp_path)), RUN, Cancellation())
    with pytest.raises(SystemBrokenError, match=re.escape(missing)):
        ask(engines)
