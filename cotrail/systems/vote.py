"""Self-consistency of any system: it answers several times, and the answer that most have wins (Wang et al., 2022)."""

from collections.abc import Sequence
from functools import partial, update_wrapper
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Temperature
from cotrail.common.refusals import refusal
from cotrail.common.structs import merged
from cotrail.core.demonstrations import Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.errors import InputError
from cotrail.systems.parts.majority import Votes, majority, sampled
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.steps import in_parallel
from cotrail.systems.spec import Needs, SystemSpec, description, find_spec

NAME = "vote"


class VoteSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A vote among several answers of one system."""

    of: str = "zero-shot-chain-of-thought"
    """The system that answers. A run records its version too, as `NAME@VERSION`."""

    samples: Annotated[int, Meta(ge=1, le=100)] = 10
    """How often it answers."""

    temperature: Temperature = 0.7
    """The temperature of all that it has the model write. A temperature in its own settings, or in its method, goes
    before this."""

    settings: dict[str, Any] = {}
    """The settings of that system, with its defaults for the others."""


class Inner(Struct, frozen=True):
    """The system that is asked, with its settings."""

    spec: SystemSpec
    settings: Struct


def vote(systems: Sequence[SystemSpec], question: Question, shots: Shots, settings: VoteSettings) -> System:
    """Have the system answer several times side by side; of the answers with the most votes the first one wins."""
    inner = inner_of(systems, settings)
    ended: dict[int, Answer] = {}
    samples = (
        sampled(inner.spec.open(question, shots, inner.settings), number, settings.temperature)
        for number in range(settings.samples)
    )
    with Limited() as end:
        yield from in_parallel(samples, ended)
    answers = tuple(ended[number] for number in sorted(ended))
    votes = majority(each.text for each in answers)
    if votes.chosen is None:
        return Answer(text="", details=votes, limit=end.limit)
    chosen = answers[votes.chosen]
    return Answer(
        text=votes.winner,
        sentences=chosen.sentences,
        paragraphs=tuple(dict.fromkeys(paragraph for each in (chosen, *answers) for paragraph in each.paragraphs)),
        details=votes,
        limit=end.limit,
    )


def inner_of(systems: Sequence[SystemSpec], settings: VoteSettings) -> Inner:
    """The system that the settings name; InputError where there is none, or where it refuses its own settings."""
    name, is_pinned, version = settings.of.partition("@")
    if name == NAME:
        raise InputError(f"{NAME} can't be a vote of itself; name another system as its setting `of`")
    if is_pinned and not (version.isascii() and version.isdigit()):
        raise InputError(f"settings of {NAME}: `of` is {settings.of!r}; name a system, such as 'ircot' or 'ircot@2'")
    spec = find_spec(systems, name, int(version) if is_pinned else None)
    values = merged(msgspec.to_builtins(spec.settings()), settings.settings)
    try:
        return Inner(spec, msgspec.convert(values, spec.settings))
    except msgspec.ValidationError as error:
        message = refusal(error, spec.settings, values)
        raise InputError(f"settings of {NAME}, for {name}: {message}; correct it") from error


def spelled_out(systems: Sequence[SystemSpec], settings: VoteSettings) -> VoteSettings:
    """The settings with the version of the system that is asked, and with all of its own settings."""
    inner = inner_of(systems, settings)
    own: dict[str, Any] = msgspec.to_builtins(inner.settings)
    return replace(settings, of=f"{inner.spec.name}@{inner.spec.version}", settings=own)


def run_needs(systems: Sequence[SystemSpec], settings: VoteSettings) -> Needs:
    """What the system that is asked needs, several times."""
    inner = inner_of(systems, settings)
    return replace(inner.spec.needs(inner.settings), samples=True)


def step_bounds(
    systems: Sequence[SystemSpec], question: Question, settings: VoteSettings
) -> tuple[StepBound, ...] | None:
    """See `SystemSpec`: samples take their steps side by side."""
    inner = inner_of(systems, settings)
    bounds = inner.spec.step_bounds(question, inner.settings)
    if bounds is None:
        return None
    samples = settings.samples
    return tuple(replace(each, times=samples * each.times, in_turn=each.in_turn or each.times) for each in bounds)


def over(systems: Sequence[SystemSpec]) -> SystemSpec:
    """The specification of votes of any of these systems."""
    return SystemSpec(
        **description(NAME),
        settings=VoteSettings,
        open=update_wrapper(partial(vote, systems), vote),
        needs=partial(run_needs, systems),
        step_bounds=partial(step_bounds, systems),
        spelled_out=partial(spelled_out, systems),
        details=Votes,
    )
