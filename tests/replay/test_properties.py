"""Whatever the system, its record leads where it led before."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.embed import Rate
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import fingerprint, kind_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.history import Failed, Next, Outcome, Recorded
from cotrail.core.questions import JudgedAnswer, Question
from cotrail.core.replay import Replay, advance
from cotrail.core.results import Failure, Generated, Rated, Result
from cotrail.core.search_ways import SearchWay, searched
from cotrail.core.system import Action, Answer, StepFailed, System, Together
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import ReplayMismatchError
from cotrail.systems.ircot import IRCoTSettings
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.rethinking.settings import RethinkingSettings
from cotrail.systems.spec import SystemSpec
from tests.cases import each_case
from tests.replay.driving import BINDING, FAILURE, MadeUp, World, found, live, record, replayed, search


class Node(Struct, frozen=True):
    """A turn of a toy system: how many actions together, whether it catches failures, what it then goes through."""

    width: int
    catches: bool
    inner: "tuple[Node, ...]" = ()


def nodes(inner: st.SearchStrategy[tuple[Node, ...]]) -> st.SearchStrategy[tuple[Node, ...]]:
    return st.lists(st.builds(Node, st.integers(1, 3), st.booleans(), inner), max_size=3).map(tuple)


RERANKED = SearchWay(retriever="hybrid", reranked=6)

PROGRAMS = st.recursive(st.just(()), nodes, max_leaves=4)


def toy(program: tuple[Node, ...]) -> Callable[[], System]:
    """A system whose every query depends on all that it was told before."""

    def system() -> System:
        return Answer(text=(yield from turns(program, "")))

    return system


def turns(program: tuple[Node, ...], told: str) -> Generator[Action | Together, Result | tuple[Result, ...], str]:
    for node in program:
        actions = tuple(search(f"{told}/{n}") for n in range(node.width))
        try:
            reply = yield (Together(actions) if node.width > 1 else actions[0])
            told = sha256(repr((told, reply)).encode()).hexdigest()[:6]
        except StepFailed as failed:
            if not node.catches:
                raise
            told += failed.failure.type
        told = yield from turns(node.inner, told)
    return told


def toy_world(action: Action) -> Outcome:
    """An outcome for each query, a failure for about every fifth."""
    assert isinstance(action, Retrieve)
    drawn = sha256(action.query.encode()).digest()[0]
    return FAILURE if drawn % 5 == 0 else found(f"t{drawn}")


@given(PROGRAMS)
def test_replay_goes_where_the_live_system_goes(program: tuple[Node, ...]) -> None:
    assert replayed(toy(program), toy_world) == live(toy(program)(), toy_world)


def rated_toy_world(action: Action) -> Outcome:
    """The same with several paragraphs, whose ratings fail too for about every fifth search."""
    drawn = sha256(repr(action).encode()).digest()
    if drawn[0] % 5 == 0:
        return FAILURE
    if isinstance(action, Rate):
        return Rated(scores=tuple(float(drawn[1 + n]) for n in range(len(action.paragraphs))))
    assert isinstance(action, Retrieve)
    return found(*(f"{action.query}-{n}" for n in range(drawn[1] % (action.count + 1))))


@given(PROGRAMS)
def test_a_system_whose_hits_are_reranked_replays_as_it_runs(program: tuple[Node, ...]) -> None:
    def reranked() -> System:
        return searched(toy(program)(), RERANKED)

    trace, ended = replayed(reranked, rated_toy_world)
    assert (trace, ended) == live(reranked(), rated_toy_world)
    pinned = replace(BINDING, pins=RERANKED.pins)
    assert advance(toy(program), [recorded_with(pinned, *step) for step in trace], pinned) == ended


def recorded_with(binding: Binding, action: Action, outcome: Outcome) -> Recorded:
    """A step as a run with that binding records it."""
    return Recorded(kind=kind_of(action).name, fingerprint=fingerprint(action, binding), outcome=outcome)


@given(PROGRAMS)
def test_every_prefix_of_a_record_leads_to_the_step_that_follows_it(program: tuple[Node, ...]) -> None:
    trace, ended = live(toy(program)(), toy_world)
    history = [record(*step) for step in trace]
    for k, expected in enumerate(history):
        following = advance(toy(program), history[:k], BINDING)
        assert isinstance(following, Next)
        assert [step.sequence for step in following.steps] == list(range(k, k + len(following.steps)))
        assert (kind_of(following.steps[0].action).name, following.steps[0].fingerprint) == (
            expected.kind, expected.fingerprint,
        )  # fmt: skip
        assert advance(toy(program), [*history[:k], replace(expected, outcome=None)], BINDING) == Next(
            following.steps[1:]
        )
    assert advance(toy(program), history, BINDING) == ended


@given(PROGRAMS, st.data())
def test_a_replay_that_is_kept_says_what_one_from_the_beginning_says(
    program: tuple[Node, ...], data: st.DataObject
) -> None:
    history = [record(*step) for step in live(toy(program)(), toy_world)[0]]
    seen = sorted(data.draw(st.lists(st.integers(0, len(history)))))
    kept = Replay(toy(program), BINDING)
    for k in [*seen, len(history)]:
        pending = [replace(step, outcome=None) for step in history[k : k + data.draw(st.integers(0, 1))]]
        assert kept.advance([*history[:k], *pending]) == advance(toy(program), [*history[:k], *pending], BINDING)


@given(PROGRAMS, st.data())
def test_any_step_recorded_otherwise_is_noticed_where_it_stands(program: tuple[Node, ...], data: st.DataObject) -> None:
    history = [record(*step) for step in live(toy(program)(), toy_world)[0]]
    wrong = [
        record(search("never asked"), FAILURE),
        record(Reason(prompt=few_shot_prompt(demonstrations=Demonstrations(), question="never asked"), max_tokens=5)),
    ]
    place = data.draw(st.integers(0, len(history)))
    changed = [*history[:place], data.draw(st.sampled_from(wrong)), *history[place + 1 :]]
    with pytest.raises(ReplayMismatchError) as raised:
        advance(toy(program), changed, BINDING)
    assert raised.value.sequence == place


# The shipped systems, in a scripted world

GRADED = JudgedAnswer(run="r", digest="0" * 64, answer="In Rome.")
ROME = Question(id="q", text="Where is the bridge that Ada built?", judged=(GRADED,))
SHOTS = {
    form: Demonstrations(
        items=(Demonstration(id=form, paragraphs=(), question="Is it?", answer="So the answer is: yes."),)
    )
    for form in AnswerForm
}
SCRIPT = {
    "name": "s",
    "questions": {
        ROME.text: {
            "sentences": ["Ada built the Long Bridge.", "Thus it is in Rome.", "It is Rome."],
            "answer": "Rome",
            "samples": [
                "Ada built the Long Bridge. The Long Bridge is in Rome. So the answer is yes.",
                "Ada built the Long Bridge. The Long Bridge is in Paris. Thus no. So the answer is no.",
                "It is so.",
            ],
        }
    },
    "default": {"answer": "Rome"},
}


def scripted_world(**failures: str) -> World:
    return MadeUp(ScriptedModel({**SCRIPT, "failures": {ROME.text: failures}}))


class Opened(Struct, frozen=True):
    """A system with settings."""

    name: str
    spec: SystemSpec
    settings: Struct

    def __call__(self) -> System:
        return self.spec.open(ROME, {**SHOTS, **self.spec.needs(self.settings).brought}, self.settings)


RETHINKING = find_system("rethinking", 1)
OPENED = [
    *(Opened(f"{spec.name}-{spec.version}", spec, spec.settings()) for spec in SYSTEMS),
    *(
        Opened(f"variant {variant} {reader}", RETHINKING, RethinkingSettings(variant=variant, reading=reading))
        for variant in ("selection", "generation")
        for reader in ("direct", "cot", "none")
        for reading in [ReaderSettings(reader=reader)]
    ),
    Opened("temporal", RETHINKING, RethinkingSettings(task="temporal", knowledge=("wikidata", "corpus"))),
]

WORLDS = {
    "undisturbed": scripted_world(),
    "empty sentence": scripted_world(**{"1": "empty"}),
    "failed sentence": scripted_world(**{"1": "permanent"}),
    "failed reader": scripted_world(answer="permanent"),
    "empty samples": scripted_world(**{"sample 0": "empty", "sample 4": "empty"}),
    "failed sample": scripted_world(**{"sample 0": "empty", "sample 5": "permanent"}),
}


@each_case("opened", [each for each in OPENED if each.spec.needs(each.settings).corpus], ids=lambda each: each.name)
def test_every_system_that_searches_can_have_its_hits_reranked(opened: Opened) -> None:
    world = WORLDS["undisturbed"]
    trace, ended = live(searched(opened(), RERANKED), world)
    searches = [action for action, _ in trace if isinstance(action, Retrieve) and action.field == "all"]
    assert all(each.options == {"retriever": "hybrid"} for each in searches)
    pinned = replace(BINDING, pins=RERANKED.pins)
    assert advance(opened, [recorded_with(pinned, *step) for step in trace], pinned) == ended


@each_case("world", WORLDS)
@each_case("opened", OPENED, ids=lambda opened: opened.name)
def test_every_system_replays_as_it_runs(opened: Opened, world: str) -> None:
    trace, ended = replayed(opened, WORLDS[world])
    assert (trace, ended) == live(opened(), WORLDS[world])
    history = [record(*step) for step in trace]
    for k, expected in enumerate(history):
        following = advance(opened, history[:k], BINDING)
        assert isinstance(following, Next)
        assert following.steps[0].fingerprint == expected.fingerprint


@each_case("opened", OPENED, ids=lambda opened: opened.name)
def test_no_system_goes_on_after_a_step_that_was_set_aside(opened: Opened) -> None:
    poisoned = Failure(type="PoisonedStep", message="again and again")
    undisturbed = WORLDS["undisturbed"]
    for place, _ in enumerate(live(opened(), undisturbed)[0]):

        def world(action: Action, place: int = place, numbers: Iterator[int] = count()) -> Outcome:  # noqa: B008
            return poisoned if next(numbers) == place else undisturbed(action)

        assert replayed(opened, world)[1] == Failed(poisoned)


def test_a_changed_setting_is_noticed_in_a_recorded_question() -> None:
    opened = OPENED[0]
    history = [record(*step) for step in replayed(opened, WORLDS["undisturbed"])[0]]
    changed = IRCoTSettings(reading=ReaderSettings(max_answer_tokens=65))
    with pytest.raises(ReplayMismatchError) as raised:
        advance(replace(opened, settings=changed), history, BINDING)
    assert raised.value.sequence == len(history) - 1


def print_fingerprints() -> None:
    for opened in OPENED:
        for action, outcome in live(opened(), WORLDS["undisturbed"])[0]:
            digest = outcome.prompt_digest if isinstance(outcome, Generated) else ""
            print(opened.name, fingerprint(action, BINDING), digest)  # noqa: T201 - read by the test below


def test_fingerprints_do_not_depend_on_the_hash_seed() -> None:
    def printed(seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", "from tests.replay.test_properties import print_fingerprints as p; p()"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout

    first = printed("1")
    assert len(first.splitlines()) > 8
    assert printed("2") == first
