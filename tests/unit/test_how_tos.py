"""The code of the architecture page's how-tos works as it stands there."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from cotrail.core.actions.generate import Read
from cotrail.core.actions.kind import Engines
from cotrail.core.actions.registry import KINDS, fingerprint, kind_of, view_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Stored
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Entailed
from cotrail.core.views import ScoredTexts
from cotrail.systems.spec import find_spec
from tests.unit.test_systems import Hand, found, wrote

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text("utf-8")
PARAGRAPHS = tuple(Paragraph(id=str(n), title="T", text=f"Text {n}.") for n in range(2))


def module(file: str) -> ModuleType:
    """The module that the page shows as this file."""
    shown = re.search(rf"`{re.escape(file)}`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown, f"the page shows no {file}"
    made = ModuleType(file.removesuffix(".py").replace("/", "."))
    sys.modules[made.__name__] = made  # msgspec looks up annotations there
    exec(compile(shown[1], file, "exec"), made.__dict__)
    return made


@pytest.fixture
def system() -> Iterator[Any]:
    made = module("cotrail/systems/draft_and_revise.py")
    yield made
    del sys.modules[made.__name__]


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = module("cotrail/core/actions/rerank.py")
    monkeypatch.setitem(KINDS, "rerank", made.RERANK)
    yield made
    del sys.modules[made.__name__]


def test_the_system_searches_with_its_draft_and_answers_from_what_was_found(system: Any) -> None:
    spec = find_spec([system.SPEC], "draft-and-revise")
    shots = {AnswerForm.DIRECT: Demonstrations()}
    assert spec.needs(spec.settings()).forms == shots.keys()
    hand = Hand(spec.open(Question(id="q", text="Who built it?"), shots, spec.settings()))
    assert isinstance(hand.last, Read)
    hand.reply(wrote("Ada"))
    assert isinstance(hand.last, Retrieve)
    assert "Ada" in hand.last.query
    hand.reply(found(*PARAGRAPHS))
    assert hand.read.prompt.paragraphs == PARAGRAPHS
    hand.reply(wrote("Brenn"))
    assert hand.answer is not None
    assert (hand.answer.text, hand.answer.paragraphs) == ("Brenn", PARAGRAPHS)


def test_the_action_is_stored_read_back_fingerprinted_and_carried_out(kind: Any) -> None:
    action = kind.Rerank(claim="It stands.", candidates=PARAGRAPHS)
    record = kind_of(action)
    stored = Stored({each.digest: each for each in record.paragraphs(action)}, lambda _: Demonstrations())
    assert record.read(record.request(action), stored) == action
    binding = Binding(model="", profile="fast", temperature=0.0, seed=0, entailer="one@1")
    other = kind.Rerank(claim="It fell.", candidates=PARAGRAPHS)
    assert len({fingerprint(each, binding) for each in (action, other)}) == 2
    judged = Entailed(entailment=0.9, neutral=0.1, contradiction=0.0)
    engines = cast(Engines, SimpleNamespace(ask=lambda *_: judged))
    result = record.carry_out(action, engines)
    assert result == kind.Reranked(scores=(0.9, 0.9))
    [scores] = view_of(action, result).parts
    assert isinstance(scores, ScoredTexts)
    assert [(row.score, row.digest) for row in scores.rows] == [(0.9, each.digest) for each in PARAGRAPHS]
