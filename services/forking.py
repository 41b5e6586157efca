"""What a person changes with `cotrail fork --set`, and the run that comes of it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail.core.binding import Binding
from cotrail.core.fork_points import Point
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.data.demonstrations.files import in_form
from cotrail.errors import InputError
from cotrail.systems import find_system
from cotrail.systems.needs import Needs
from models.commands.submission import Submission
from models.queries.progress import RunRecord
from services.requests import (
    RunRequest,
    compose,
    described,
    make_request,
    make_shots,
    needs_of,
    read_shown,
    system_settings,
)

NAMES = ("model", "profile", "embedder", "entailer")
NUMBERS = ("seed", "temperature")
"""What of a run can be set beside its system's settings."""

Shots = Mapping[AnswerForm, Demonstrations]


def read_changes(record: RunRecord, given: Sequence[str]) -> dict[str, Any]:
    """What is to be set by its key, a setting by `settings.` and its dotted path; InputError says what there is."""
    return dict(_change(record, each) for each in given)


def prepare_fork(record: RunRecord, shots: Shots, changes: Mapping[str, Any], at: Point | None) -> Submission:
    """The run that a fork begins, checked as `cotrail submit` checks it; raises InputError and its kinds.

    What isn't changed stays as the origin pinned it, be that still there or not.
    shots: the origin's demonstrations.
    """
    spec = find_system(record.system, record.system_version)
    request = _request(record, changes)
    configured = system_settings(spec, request)
    needs = needs_of(spec, configured)
    if needs.corpus and record.corpus is None:
        raise InputError(f"with these settings {record.system} searches a corpus, and run {record.id} has none")
    kept: dict[str, Any] = {key: record.provenance[key] for key in ("request", "files") if key in record.provenance}
    submission = compose(
        request,
        spec=spec,
        configured=configured,
        needs=needs,
        retriever=None,
        shots={**make_shots(needs, _source(record, shots, needs), Demonstrations()), **shots},
        provenance={**kept, "set": dict(changes)},
        today=date.today(),
    )
    return replace(
        submission,
        binding=_pinned(record, submission.binding, changes, searches=needs.corpus),
        origin=record.id,
        forked_at=None if at is None else str(at),
    )


def _request(record: RunRecord, changes: Mapping[str, Any]) -> RunRequest:
    settings: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record.settings))
    for key, value in changes.items():
        if key.startswith("settings."):
            *parents, name = key.split(".")[1:]
            tree = settings
            for parent in parents:
                tree = tree[parent]
            tree[name] = value
    names = {"model": record.model_name, "embedder": record.embedder_name, "entailer": record.entailer_name}
    given: dict[str, Any] = {
        "system": record.system,
        "dataset": record.dataset,
        "questions": "",
        "corpus": record.corpus,
        "settings": settings,
        "profile": record.profile,
        "temperature": record.temperature,
        "seed": record.seed,
        **{key: name or None for key, name in names.items()},
    }
    return make_request(given | {key: value for key, value in changes.items() if key in (*NAMES, *NUMBERS)})


def _pinned(record: RunRecord, fresh: Binding, changes: Mapping[str, Any], *, searches: bool) -> Binding:
    """What the fork binds: as the origin did, but for what is changed or new."""
    judged = "entailer" in changes or ("model" in changes and record.model in record.entailer)
    return replace(
        fresh,
        model=fresh.model if "model" in changes else record.model,
        corpus=record.corpus_revision if searches else "",
        embedder=fresh.embedder if "embedder" in changes else record.embedder or fresh.embedder,
        entailer=fresh.entailer if judged else record.entailer or fresh.entailer,
        knowledge={source: record.knowledge.get(source, revision) for source, revision in fresh.knowledge.items()},
    )


def _source(record: RunRecord, shots: Shots, needs: Needs) -> Demonstrations:
    """What the fork's demonstrations are made from: the origin's chains, its file, or else its answers."""
    if AnswerForm.COT in shots or AnswerForm.COT not in needs.forms:
        return shots.get(AnswerForm.COT) or shots.get(AnswerForm.DIRECT) or Demonstrations()
    files, request = record.provenance.get("files", {}), record.provenance.get("request", {})
    if "demonstrations" not in files:
        return shots.get(AnswerForm.DIRECT, Demonstrations())
    for file in (files[key] for key in ("demonstrations", "sets") if key in files):
        if described(Path(file["path"])) != file:
            raise InputError(f"{file['path']} isn't the file that run {record.id} was submitted with; put that back")
    sets = files["sets"]["path"] if "sets" in files else request.get("sets")
    return in_form(read_shown(files["demonstrations"]["path"], sets, request.get("set_number")), AnswerForm.COT)


def _change(record: RunRecord, given: str) -> tuple[str, Any]:
    key, equals, text = given.partition("=")
    if not equals:
        raise InputError(f"{given!r} sets nothing: write KEY=VALUE")
    if key in NAMES:
        return key, text
    if key in NUMBERS:
        return key, _value(text)
    paths = [path for path in _paths(record.settings) if key in (path, f"settings.{path}")]
    paths = paths or [path for path in _paths(record.settings) if path.rsplit(".", 1)[-1] == key]
    if len(paths) == 1:
        return f"settings.{paths[0]}", _value(text)
    if paths:
        raise InputError(f"{key!r} may be {' or '.join(paths)}; write the whole path")
    known = ", ".join((*NAMES, *NUMBERS, *_paths(record.settings)))
    raise InputError(f"there is no {key!r} to set in run {record.id}; there are: {known}")


def _paths(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _value(text: str) -> Any:
    """As JSON, and a text where it isn't any."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    if b"\\u0000" in msgspec.json.encode(value):
        raise InputError(f"{text!r} holds a NUL character (\\u0000), which can't be stored; take it out")
    return value
