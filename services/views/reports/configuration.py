"""Configuration of a run as names and values that people read."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

from cotrail.common.dotted_names import dotted
from cotrail.common.humanize import count
from cotrail.common.short_digests import shortened
from cotrail.core.binding import FURTHER_CORPUS
from cotrail.core.edits import read_edited
from cotrail.core.money import described
from cotrail.core.ports.knowledge import Source
from cotrail.core.repeats import read_repeat, read_repeated_steps
from cotrail.evaluation.metrics.stop_rules import rule_of
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.runs import BUDGETS, STAND_INS, read_prices


def local(moment: datetime) -> str:
    """A time in this process's time zone, to the minute."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def configuration(record: RunRecord) -> Iterator[tuple[str, str]]:
    """All that decides a run's results, and its software; names that begin with spaces are the system's settings."""
    yield "submitted", local(record.created_at)
    yield "priority", str(record.priority)
    yield from _origin(record)
    yield "system", f"{record.system}, version {record.system_version}"
    for name, value in flat(record.settings):
        yield f"  {name}", value
    yield "dataset", record.dataset
    for kind, file in record.provenance.get("files", {}).items():
        yield kind, f"{file['path']}, SHA-256 {shortened(file['sha256'])}"
    for name, revision in record.corpora.items():
        yield "corpus", f"{name}, revision {shortened(revision)}"
    sampling = f"temperature {record.temperature:g}, seed {record.seed}"
    pins = {name: pin for name, pin in record.knowledge.items() if not name.startswith(FURTHER_CORPUS)}
    engines = {role: identity for role, identity in pins.items() if role not in get_args(Source)}
    for source, revision in sorted(pins.items() - engines.items()):
        yield "knowledge", f"{source}, revision {shortened(revision)}"
    yield "model", f"{shortened(record.model)}, profile {record.profile}, {sampling}"
    for name in ("embedder", "entailer"):
        if identity := getattr(record, name):
            yield name, shortened(identity)
    for role, identity in sorted(engines.items()):
        yield role.replace("_", " "), shortened(identity)
    for note in record.provenance.get(STAND_INS, ()):
        yield "instead", note
    yield from _costs(record)
    yield "software", _software(record.provenance)
    yield "digest", record.digest or "none until all questions have ended"


def _origin(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What a run belongs to, and where it comes from."""
    if record.experiment_id:
        yield "experiment", f"{record.experiment_id}, {record.cell}"
    if repeat := read_repeat(record.provenance):
        yield "repeat", f"{repeat.number} of {repeat.times}, the first is {repeat.of}"
    if again := read_repeated_steps(record.provenance):
        yield "repeats", f"{count(len(again.steps), 'step')} of {record.origin}, drawn by seed {again.seed}"
    elif record.origin:
        yield "origin", f"{record.origin}, forked at {record.forked_at or 'the first step that differs'}"
    if edited := read_edited(record.provenance):
        yield "edit", f"{edited.edit.words}, of question {edited.question}"


def _costs(record: RunRecord) -> Iterator[tuple[str, str]]:
    """The prices of a run's language models, its budgets and its rule."""
    for role, price in read_prices(record.provenance).items():
        yield f"price of the {role.replace('_', ' ')}", "not known" if price is None else described(price)
    for of, budget in record.provenance.get(BUDGETS, {}).items():
        yield (
            f"budget of {'each question' if of == 'question' else 'the run'}",
            ", ".join(f"{amount:,} {'US dollars' if name == 'money' else name}" for name, amount in budget.items()),
        )
    if rule := rule_of(record.provenance):
        yield "stops asking questions at", str(rule)


def _software(provenance: dict[str, Any]) -> str:
    versions = [f"cotrail {provenance.get('cotrail')}", f"Python {provenance.get('python')}"]
    if git := provenance.get("git"):
        versions.append(f"git {shortened(git)}")
    return ", ".join(versions)


def flat(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings as dotted names and values, both as text."""
    for name, value in dotted(settings):
        yield name, ", ".join(str(each).strip() for each in value) if isinstance(value, list | tuple) else str(value)
