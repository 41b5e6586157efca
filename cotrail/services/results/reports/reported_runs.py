"""The runs behind a report, with their configurations."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec
from sqlalchemy import Connection

from cotrail.common.humanize import count, moment
from cotrail.common.structs import dotted, shortened
from cotrail.core.binding import FURTHER_CORPUS
from cotrail.core.budgets import Budgets
from cotrail.core.edits import read_edited
from cotrail.core.money import described
from cotrail.core.ports.retriever import Source
from cotrail.core.repeats import read_repeat, read_repeated_steps
from cotrail.evaluation.experiments.report_tables import ReportedRun
from cotrail.evaluation.metrics.stop_rules import rule_of
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.runs import BUDGETS, STAND_INS, read_prices


def configuration(record: RunRecord) -> Iterator[tuple[str, str]]:
    """All that decides a run's results, and its software; names that begin with spaces are the system's settings."""
    yield "submitted", moment(record.created_at)
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
    yield from msgspec.convert(record.provenance.get(BUDGETS, {}), Budgets).named()
    if rule := rule_of(record.provenance):
        yield "stops asking questions at", str(rule)


def _software(provenance: dict[str, Any]) -> str:
    titled = (("cotrail", "cotrail"), ("python", "Python"), ("git", "git"))
    versions = ((title, provenance.get(name)) for name, title in titled)
    known = [f"{title} {shortened(each) if title == 'git' else each}" for title, each in versions if each]
    return ", ".join(known) or "not recorded"


def flat(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings as dotted names and values, both as text."""
    for name, value in dotted(settings):
        yield name, ", ".join(map(_shown, value)) if isinstance(value, list | tuple) and value else _shown(value)


def _shown(value: Any) -> str:
    """A value in words, as settings files write it where they can."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value in ((), [], {}) else str(value).strip()


def read_reported_runs(connection: Connection, ids: Mapping[str, str]) -> tuple[ReportedRun, ...]:
    """The runs as they stand; ids: by the names that they have in the report."""
    return tuple(_reported(connection, name, run_id) for name, run_id in ids.items())


def _reported(connection: Connection, name: str, run_id: str) -> ReportedRun:
    record = read_run(connection, run_id)
    facts = tuple((each.strip(), value) for each, value in configuration(record))
    return ReportedRun(name=name, id=run_id, state=read_progress(connection, run_id).state, facts=facts)
