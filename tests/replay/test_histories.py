"""Recorded questions, replayed: what each version of a system did, it does for as long as a run may pin it.

A file in `histories` holds a question, what its run pins, a record, and what must follow it. Those named `bad` don't
agree with the code, on purpose.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, generation_request
from cotrail.core.actions.registry import KINDS, kind_of
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.history import Failed, Finished, Next, Outcome, Recorded
from cotrail.core.questions import Question
from cotrail.core.replay import advance
from cotrail.core.results import Failure, Result
from cotrail.core.system import Action
from cotrail.errors import ReplayMismatchError
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import Needs, SystemSpec
from tests.cases import each_case

DIVERGING = {
    "another kind": "another kind",
    "another input": "the same kind with another input",
    "a result that can't be read": "a result that can't be read (it is cut off)",
    "a step too many": "no step: it is finished",
}
"""The sorts of records that the code departs from, and what is said of them."""

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "histories").glob("*.json"))}

Json = dict[str, Any]


class StoredStep(Struct, kw_only=True, forbid_unknown_fields=True):
    """A step of a record; `outcome` is a failure where it has a `type`."""

    kind: str
    fingerprint: str
    outcome: Json | None = None
    unreadable: str | None = None

    def recorded(self) -> Recorded:
        return Recorded(
            kind=self.kind, fingerprint=self.fingerprint, outcome=self._outcome(), unreadable=self.unreadable
        )

    def _outcome(self) -> Outcome | None:
        if self.outcome is None:
            return None
        if "type" in self.outcome:
            return msgspec.convert(self.outcome, Failure)
        result: Result = msgspec.convert(self.outcome, KINDS[self.kind].result)
        return result


class History(Struct, kw_only=True, forbid_unknown_fields=True):
    """A file: what a run pins, one question's record, and what follows it (one of the shapes of `follow`)."""

    shows: str
    system: str
    version: int
    settings: Json
    binding: Binding
    demonstrations: dict[AnswerForm, Demonstrations]
    question: Question
    history: list[StoredStep]
    expected: Json

    def follow(self, length: int | None = None) -> Json:
        """What follows the record, or its first so many steps."""
        try:
            outcome = self._advance(length)
        except ReplayMismatchError as error:
            return {"mismatch": {"sequence": error.sequence, "recorded": error.recorded, "yielded": error.yielded}}
        match outcome:
            case Next(steps):
                return {"next": [{"fingerprint": step.fingerprint, **shown(step.action)} for step in steps]}
            case Finished(answer):
                written = json.loads(msgspec.json.encode(answer))
                del written["limit"]  # which the files, being older, don't have
                written["weighing"] = written.pop("details")  # as the files call it, which are older than other details
                return {"answer": {name: value for name, value in written.items() if value is not None}}
            case Failed(failure):
                return {"failed": msgspec.to_builtins(failure)}

    @property
    def spec(self) -> SystemSpec:
        return find_system(self.system, self.version)

    @property
    def needs(self) -> Needs:
        return self.spec.needs(self._settings)

    def asked(self) -> Iterator[Action]:
        """Everything that the system asks for."""
        for length in range(len(self.history) + 1):
            if isinstance(following := self._advance(length), Next):
                yield from (step.action for step in following.steps)

    @property
    def _settings(self) -> Struct:
        return msgspec.convert(self.settings, self.spec.settings)

    def _advance(self, length: int | None) -> Next | Finished | Failed:
        recorded = [step.recorded() for step in self.history[:length]]
        opened = partial(self.spec.open, self.question, self.demonstrations, self._settings)
        return advance(opened, recorded, self.binding)


def shown(action: Action) -> Json:
    """An action in full, so that a difference can be seen."""
    kind = kind_of(action).name
    if isinstance(action, Retrieve):
        return {"kind": kind, "query": action.query, "count": action.count, "titles": list(action.titles)}
    if not isinstance(action, Prompted):
        return {"kind": kind, **json.loads(msgspec.json.encode(action))}
    drawn = {name: value for name in ("sample", "temperature") if (value := getattr(action, name, None)) is not None}
    lines = action.prompt.render().split("\n")
    return {"kind": kind, "max_tokens": action.max_tokens, "until": action.until, **drawn, "prompt": lines}


def history(name: str) -> History:
    assert name in FILES, f"there is no {name}.json: `python -m tests.replay.recording SYSTEM` records it"
    written = msgspec.json.decode(FILES[name].read_bytes())
    binding = written["binding"]
    if "knowledge" in binding:
        binding["pins"] = binding.pop("knowledge")  # the files name it as its column is named
    if "corpus" in binding:
        binding["corpora"] = {"corpus": binding.pop("corpus")}  # and had one corpus without its name
    return msgspec.convert(written, History)


@each_case("name", FILES)
def test_what_follows_a_record_stays_the_same(name: str) -> None:
    recorded = history(name)
    assert recorded.follow() == recorded.expected, (
        f"{recorded.system} version {recorded.version} no longer does what it did ({recorded.shows}): questions under "
        "way would be blocked or answered otherwise. Revert the change, or raise the system's version, keep this one "
        "in SYSTEMS while runs may pin it, and record histories of the new one."
    )


@each_case("name", [name for name in FILES if "_bad_" not in name])
def test_every_prefix_of_a_record_leads_to_its_next_step(name: str) -> None:
    recorded = history(name)
    for length, step in enumerate(recorded.history):
        following = recorded.follow(length)["next"][0]
        assert (following["kind"], following["fingerprint"]) == (step.kind, step.fingerprint), (
            f"step {length} of {name}: raise the version of {recorded.system}, or revert the change"
        )


@each_case("name", [name for name in FILES if "_bad_" not in name])
def test_a_system_declares_what_its_steps_need(name: str) -> None:
    recorded = history(name)
    for action in recorded.asked():
        if isinstance(action, Prompted):
            assert generation_request(action, recorded.binding).needed_capabilities <= recorded.needs.capabilities
            assert action.sample is None or recorded.needs.samples
        if isinstance(action, Retrieve | Open):
            assert recorded.needs.corpus


OURS = tuple(SYSTEMS)
"""As they are before a test asks by a system of its own."""


@each_case("spec", OURS, ids=lambda spec: f"{spec.name}_v{spec.version}")
def test_every_version_of_a_system_has_a_record_of_an_answer_and_a_bad_one(spec: SystemSpec) -> None:
    ends = {next(iter(history(name).expected)) for name in FILES if name.startswith(f"{spec.name}_v{spec.version}_")}
    assert ends >= {"answer", "mismatch"}, "record them: `python -m tests.replay.recording SYSTEM`"


@each_case("spec", OURS, ids=lambda spec: f"{spec.name}_v{spec.version}")
def test_a_system_that_searches_does_so_in_its_record(spec: SystemSpec) -> None:
    recorded = history(f"{spec.name}_v{spec.version}_answered")
    kinds = {step.kind for step in recorded.history}
    assert not recorded.needs.corpus or kinds & {"retrieve", "open"}


@each_case(("sort", "said"), DIVERGING.items())
@each_case("spec", OURS, ids=lambda spec: f"{spec.name}_v{spec.version}")
def test_every_version_of_a_system_notices_each_sort_of_divergence(spec: SystemSpec, sort: str, said: str) -> None:
    recorded = history(f"{spec.name}_v{spec.version}_answered")
    *earlier, last = recorded.history
    spoiled = {
        "another kind": [*earlier, replace(last, kind="embed", outcome=None)],
        "another input": [*earlier, replace(last, fingerprint="0" * 64)],
        "a result that can't be read": [*earlier, replace(last, outcome=None, unreadable="it is cut off")],
        "a step too many": [*recorded.history, last],
    }[sort]
    mismatch = replace(recorded, history=spoiled).follow()["mismatch"]
    assert mismatch["sequence"] == len(spoiled) - 1
    assert said in f"{mismatch['recorded']}: {mismatch['yielded']}"


@each_case("name", FILES)
def test_a_file_is_named_for_what_it_holds(name: str) -> None:
    recorded = history(name)
    assert name.startswith(f"{recorded.system}_v{recorded.version}_")
    assert ("_bad_" in name) == ("mismatch" in recorded.expected)
