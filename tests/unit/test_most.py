"""The most that systems ask for by their settings, held against what they asked for in recorded histories."""

from collections import Counter

import msgspec

from cotrail.core.actions.generate import Prompted
from cotrail.systems.ircot import IRCoTSettings, step_bounds
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.registry import SYSTEMS
from tests.cases import each_case
from tests.replay.test_histories import FILES, history
from tests.unit.test_systems import QUESTION

BOUNDED = [name for name in FILES if "_bad_" not in name and not name.startswith("rethinking")]


@each_case("name", BOUNDED)
def test_no_recorded_question_took_more(name: str) -> None:
    recorded = history(name)
    bounds = recorded.spec.step_bounds(recorded.question, msgspec.convert(recorded.settings, recorded.spec.settings))
    assert bounds is not None
    allowed: Counter[str] = Counter()
    for bound in bounds:
        allowed[bound.kind] += bound.times
    assert not Counter(step.kind for step in recorded.history) - allowed
    longest = max(bound.output for bound in bounds)
    assert all(action.max_tokens <= longest for action in recorded.asked() if isinstance(action, Prompted))


def test_a_search_precedes_each_sentence_and_the_reader_ends_it() -> None:
    counts = {each.kind: each.times for each in step_bounds(QUESTION, IRCoTSettings(max_sentences=3))}
    assert counts == {"retrieve": 3, "reason": 3, "read": 1}
    readerless = IRCoTSettings(max_sentences=3, reading=ReaderSettings(reader="none"))
    assert {each.kind for each in step_bounds(QUESTION, readerless)} == {"retrieve", "reason"}


def test_all_systems_with_bounds_say_so() -> None:
    bounded = {spec.name for spec in SYSTEMS if spec.step_bounds(QUESTION, spec.settings()) is not None}
    assert {spec.name for spec in SYSTEMS} - bounded == {"rethinking"}
