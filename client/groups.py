"""The operations by their groups, for clients; written by `python -m cotrail.client.generate`."""

# ruff: noqa: A002, E501, I001
# fmt: off

from collections.abc import AsyncIterator
from cotrail.client.asking import AsyncGroup, Group
from cotrail.client.door import RemoteDoor
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from cotrail.audit.findings import Verification
from cotrail.core.paragraphs import Hit
from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.evaluation.metrics.factual_errors import SentenceMark
from cotrail.models.commands.pruning import Pruned
from cotrail.models.queries.activities import ActivityRecord
from cotrail.models.queries.events import QuestionChanged
from cotrail.models.queries.events import StepEnded as EventsStepEnded
from cotrail.models.queries.progress import Cause
from cotrail.models.queries.projects import ProjectRecord
from cotrail.models.queries.question_places import QuestionPlace
from cotrail.models.queries.step_times import StepTimes
from cotrail.models.queries.tokens import TokenRecord
from cotrail.models.schema.states import JobState
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.access.actor import Scope
from cotrail.services.access.projects import Changes
from cotrail.services.access.projects import NewProject
from cotrail.services.access.tokens import NewToken
from cotrail.services.access.tokens import RevokedToken
from cotrail.services.data.arriving_files import Upload
from cotrail.services.data.uploaded_files import UploadedFile
from cotrail.services.jobs.indexing import IndexRequest
from cotrail.services.jobs.job import Job
from cotrail.services.jobs.job import JobPage
from cotrail.services.lists.asked_list import AskedPage
from cotrail.services.lists.corpora import Found
from cotrail.services.lists.corpora import ListedCorpus
from cotrail.services.lists.corpora import ShownParagraph
from cotrail.services.lists.dataset_list import ListedDataset
from cotrail.services.lists.knowledge_list import SourceState
from cotrail.services.lists.model_list import DescribedModel
from cotrail.services.lists.model_list import ListedModel
from cotrail.services.lists.paragraph_uses import ParagraphUses
from cotrail.services.lists.question_list import QuestionListPage
from cotrail.services.lists.queue_list import QueueList
from cotrail.services.lists.run_list import RunListPage
from cotrail.services.lists.system_list import DescribedSystem
from cotrail.services.lists.system_list import ListedSystem
from cotrail.services.lists.worker_list import WorkerList
from cotrail.services.live.events import Ended
from cotrail.services.live.events import Progressed
from cotrail.services.live.events import Token as EventsToken
from cotrail.services.operations.experiments import ReportedExperiment
from cotrail.services.operations.judging import BegunJudge
from cotrail.services.operations.progress import Broker
from cotrail.services.operations.rethinking import ComparedRuns
from cotrail.services.operations.runs import FoundRun
from cotrail.services.operations.whoami import WhoAmI
from cotrail.services.papers.described import DescribedExperiment
from cotrail.services.papers.sent_files import ExperimentRequest
from cotrail.services.runs.ask_choices import AskChoices
from cotrail.services.runs.control import ControlledRun
from cotrail.services.runs.control import PrioritizedRun
from cotrail.services.runs.control import RetriedRun
from cotrail.services.runs.estimating import Estimate
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.forking import ForkedRun
from cotrail.services.runs.judging import JudgeRequest
from cotrail.services.runs.labels import LabelledRun
from cotrail.services.runs.pruning import PrunedRuns
from cotrail.services.runs.repeating import RepeatedRun
from cotrail.services.runs.repeating import Repeating
from cotrail.services.runs.replaying import ReplayedRun
from cotrail.services.runs.requests import AskRequest
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.run_readings import RunReading
from cotrail.services.runs.submitted import Submitted
from cotrail.services.views.annotations import AnnotationSummary
from cotrail.services.views.annotations import SampledChains
from cotrail.services.views.annotations import SentenceRow
from cotrail.services.views.ask_events import Answer
from cotrail.services.views.ask_events import Asked
from cotrail.services.views.ask_events import End
from cotrail.services.views.ask_events import StepEnded
from cotrail.services.views.ask_events import Token
from cotrail.services.views.calibrating import RunCalibration
from cotrail.services.views.cause_labelling import Case
from cotrail.services.views.cause_labelling import CauseRow
from cotrail.services.views.cause_labelling import LabellingSummary
from cotrail.services.views.comparison import Comparison
from cotrail.services.views.judged_scores import JudgedScores
from cotrail.services.views.paired_questions import PairedQuestions
from cotrail.services.views.repeated_steps import RepeatReport
from cotrail.services.views.run_details import RunDetails
from cotrail.services.views.run_errors import RunErrors
from cotrail.services.views.run_overview import RunOverview
from cotrail.services.views.run_plan import RunPlan
from cotrail.services.views.run_verdicts import RunVerdicts
from cotrail.services.views.seals import Seals
from cotrail.services.views.shown_questions import ShownQuestion
from cotrail.services.views.side_by_side import SideBySide
from cotrail.services.views.step_parts import StepParts
from cotrail.services.views.step_prompts import StepPrompt
from cotrail.services.views.step_records import StepRecord
from cotrail.services.views.summarized_questions import QuestionSummaries
from cotrail.services.views.summarized_runs import RunStanding
from pathlib import Path
from typing import Any
from typing import Literal


class Activities(Group):
    """Operations on activities."""

    def index(self, limit: int = 100, before: int | None = None) -> tuple[ActivityRecord, ...]:
        """List what was asked for that changes anything, the newest first; before: only what came before this one."""
        answer: tuple[ActivityRecord, ...] = self._ask("activities.index", {"limit": limit, "before": before})
        return answer


class Annotations(Group):
    """Operations on annotations."""

    def chains(self, run: str, *, size: int = 40, seed: int = 0) -> SampledChains:
        """Draw chains of thought of a run, for a person to judge their sentences; the same for the same seed."""
        answer: SampledChains = self._ask("annotations.chains", {"run": run, "size": size, "seed": seed})
        return answer

    def marks(self, run: str, annotator: str | None = None) -> tuple[SentenceMark, ...]:
        """List which sentences of a run people have marked as true or not; annotator: only the marks of this one."""
        answer: tuple[SentenceMark, ...] = self._ask("annotations.marks", {"run": run, "annotator": annotator})
        return answer

    def mark(self, run: str, marks: Sequence[SentenceMark]) -> int:
        """Store marks of sentences, each in place of its annotator's former one; returns how many these are."""
        answer: int = self._ask("annotations.mark", {"run": run, "marks": marks})
        return answer

    def forget(self, run: str, *, question: str, position: int, annotator: str) -> None:
        """Take away an annotator's mark of a sentence; question: its id; position: of the sentence in its chain, from 0."""
        answer: None = self._ask("annotations.forget", {"run": run, "question": question, "position": position, "annotator": annotator})
        return answer

    def fill_in(self, run: str, *, annotator: str, rows: Mapping[str, SentenceRow]) -> AnnotationSummary:
        """Store the marks of a file's rows that are filled in, all or none.

        rows: by where each stands in its file, for what is said of those that can't be used.
        """
        answer: AnnotationSummary = self._ask("annotations.fill_in", {"run": run, "annotator": annotator, "rows": rows})
        return answer

    def summary(self, run: str, *, annotator: str, questions: Sequence[str]) -> AnnotationSummary:
        """Say how far an annotator is with the chains of these questions, and what all annotators found in the run."""
        answer: AnnotationSummary = self._ask("annotations.summary", {"run": run, "annotator": annotator, "questions": questions})
        return answer


class Asking(Group):
    """Operations on asking."""

    def ask(self, request: AskRequest) -> Iterator[Asked | Token | StepEnded | Answer | End | None]:
        """Answer one question ahead of all that is queued: tell of its steps as they end, and of what they write.

        Whoever hangs up before the end cancels the run; its record stays. Within a process, None says that nothing has
        happened for a while.
        """
        answer: Iterator[Asked | Token | StepEnded | Answer | End | None] = self._ask("asking.ask", {"request": request})
        return answer

    def begin(self, request: AskRequest) -> Asked:
        """Have a question answered ahead of all that is queued, without waiting for it."""
        answer: Asked = self._ask("asking.begin", {"request": request})
        return answer

    def index(self, limit: int = 20, after: str | None = None) -> AskedPage:
        """List the questions that were asked alone, the newest first; after: the run behind which the page begins."""
        answer: AskedPage = self._ask("asking.index", {"limit": limit, "after": after})
        return answer

    def choices(self) -> AskChoices:
        """Say which systems, corpora and models a question can be asked of."""
        answer: AskChoices = self._ask("asking.choices", {})
        return answer


class Audits(Group):
    """Operations on audits."""

    def seals(self, run: str) -> Seals:
        """Say what of a run is sealed, by which digests, and since when; nothing is computed again."""
        answer: Seals = self._ask("audits.seals", {"run": run})
        return answer

    def verify(self, run: str, *, digest: str | None = None, plan: str | None = None) -> Verification:
        """Compute all digests of a run again, and name what was changed, removed, added or reordered.

        digest, plan: the run's and its plan's, as they were noted down once.
        """
        answer: Verification = self._ask("audits.verify", {"run": run, "digest": digest, "plan": plan})
        return answer

    def verify_bundle(self, bundle: Path, *, digest: str | None = None, plan: str | None = None) -> Verification:
        """Do the same for a run's bundle; bundle: a file that `audit export` wrote."""
        answer: Verification = self._ask("audits.verify_bundle", {"bundle": bundle, "digest": digest, "plan": plan})
        return answer

    def bundle(self, run: str) -> Iterator[bytes]:
        """Give all that is recorded of a run as one file: JSON Lines under Zstandard."""
        answer: Iterator[bytes] = self._ask("audits.bundle", {"run": run})
        return answer

    def provenance(self, run: str, question: str) -> dict[str, Any]:
        """Give a question as W3C PROV-JSON; question: its id, or its number in the run, from 1."""
        answer: dict[str, Any] = self._ask("audits.provenance", {"run": run, "question": question})
        return answer

    def prompt(self, step: str) -> StepPrompt:
        """Give the exact prompt of a step, by its id in the table `steps`."""
        answer: StepPrompt = self._ask("audits.prompt", {"step": step})
        return answer


class CauseLabels(Group):
    """Operations on causelabels."""

    def cases(self, run: str, *, size: int = 40, seed: int = 0) -> tuple[Case, ...]:
        """Draw wrong answers of a run, for a person to label; the same for the same seed."""
        answer: tuple[Case, ...] = self._ask("cause_labels.cases", {"run": run, "size": size, "seed": seed})
        return answer

    def labels(self, run: str, annotator: str | None = None) -> tuple[CauseLabel, ...]:
        """List what people say of the causes of a run's wrong answers; annotator: only the labels of this one."""
        answer: tuple[CauseLabel, ...] = self._ask("cause_labels.labels", {"run": run, "annotator": annotator})
        return answer

    def label(self, run: str, labels: Sequence[CauseLabel]) -> int:
        """Store labels, each in place of its annotator's former one; returns how many these are."""
        answer: int = self._ask("cause_labels.label", {"run": run, "labels": labels})
        return answer

    def forget(self, run: str, *, question: str, annotator: str) -> None:
        """Take away an annotator's label of the answer to a question, by its id."""
        answer: None = self._ask("cause_labels.forget", {"run": run, "question": question, "annotator": annotator})
        return answer

    def fill_in(self, run: str, *, annotator: str, rows: Mapping[str, CauseRow]) -> LabellingSummary:
        """Store the labels of a file's rows that are filled in, all or none.

        rows: by where each stands in its file, for what is said of those that can't be used.
        """
        answer: LabellingSummary = self._ask("cause_labels.fill_in", {"run": run, "annotator": annotator, "rows": rows})
        return answer

    def summary(self, run: str, *, annotator: str, questions: Sequence[str]) -> LabellingSummary:
        """Say how far an annotator is with the answers to these questions."""
        answer: LabellingSummary = self._ask("cause_labels.summary", {"run": run, "annotator": annotator, "questions": questions})
        return answer


class Comparisons(Group):
    """Operations on comparisons."""

    def show(self, runs: Sequence[str], *, against: str | None = None, metrics: Sequence[str] = ()) -> Comparison:
        """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

        against: one of them, with which alone the others are compared. metrics: the first one decides; the main scores that
        all runs have where none is named.
        """
        answer: Comparison = self._ask("comparisons.show", {"runs": runs, "against": against, "metrics": metrics})
        return answer

    def questions(self, first: str, second: str, *, metric: str = '', outcome: Literal['both', 'first', 'second', 'neither', 'differ'] = 'differ', limit: int = 100, after: str | None = None, around: str | None = None) -> PairedQuestions:
        """List the questions of two runs by who answered them right, and say how many there are of each outcome.

        metric: what decides; the first main score that both runs have where none is named. after: the question behind which
        the list begins; around: one whose neighbours in the whole list are told, by id.
        """
        answer: PairedQuestions = self._ask("comparisons.questions", {"first": first, "second": second, "metric": metric, "outcome": outcome, "limit": limit, "after": after, "around": around})
        return answer

    def question(self, question: str, first: str, second: str, *, start: int = 0, limit: int = 20) -> SideBySide:
        """Show two runs side by side on one question: their steps aligned, and what only one of them has.

        question: its id or, where none has it, its number in the first run, from 1. start: the row that is shown first.
        """
        answer: SideBySide = self._ask("comparisons.question", {"question": question, "first": first, "second": second, "start": start, "limit": limit})
        return answer


class Corpora(Group):
    """Operations on corpora."""

    def make(self, request: IndexRequest) -> Job:
        """Queue a corpus to be made of uploaded files; one of that name is replaced once the new one is complete.

        The same request again makes nothing more.
        """
        answer: Job = self._ask("corpora.make", {"request": request})
        return answer

    def index(self) -> tuple[ListedCorpus, ...]:
        """List the corpora by name."""
        answer: tuple[ListedCorpus, ...] = self._ask("corpora.index", {})
        return answer

    def show(self, corpus: str) -> ListedCorpus:
        """Show a corpus."""
        answer: ListedCorpus = self._ask("corpora.show", {"corpus": corpus})
        return answer

    def search(self, corpus: str, query: str, k: int = 10, field: Literal['all', 'title'] = 'all', *, distinct: bool = False) -> Found:
        """Search a corpus by hand.

        field: what the query is compared with, title and text or the title alone; distinct: paragraphs of the same text
        count as one.
        """
        answer: Found = self._ask("corpora.search", {"corpus": corpus, "query": query, "k": k, "field": field, "distinct": distinct})
        return answer

    def paragraph(self, corpus: str, paragraph: str) -> ShownParagraph:
        """Show a paragraph of a corpus, by its id there."""
        answer: ShownParagraph = self._ask("corpora.paragraph", {"corpus": corpus, "paragraph": paragraph})
        return answer

    def uses(self, digest: str, limit: int = 50, after: str | None = None) -> ParagraphUses:
        """List the questions whose searches found a paragraph, the latest first; digest: that of its title and text."""
        answer: ParagraphUses = self._ask("corpora.uses", {"digest": digest, "limit": limit, "after": after})
        return answer

    def remove(self, corpus: str) -> ListedCorpus:
        """Remove a corpus for good, unless a run that hasn't ended searches it."""
        answer: ListedCorpus = self._ask("corpora.remove", {"corpus": corpus})
        return answer


class Datasets(Group):
    """Operations on datasets."""

    def index(self) -> tuple[ListedDataset, ...]:
        """List the datasets whose questions can be read."""
        answer: tuple[ListedDataset, ...] = self._ask("datasets.index", {})
        return answer

    def show(self, dataset: str) -> ListedDataset:
        """Show a dataset: its files, where to get them, its metric and its corpus."""
        answer: ListedDataset = self._ask("datasets.show", {"dataset": dataset})
        return answer


class Errors(Group):
    """Operations on errors."""

    def show(self, run: str) -> RunErrors:
        """Say why a run's wrong answers are wrong, by rules over what is recorded."""
        answer: RunErrors = self._ask("errors.show", {"run": run})
        return answer


class Experiments(Group):
    """Operations on experiments."""

    def conduct(self, request: ExperimentRequest) -> Job:
        """Queue an experiment to be conducted until its runs are done; one that was begun continues.

        What it came to, and meanwhile how far it is, is the job's result.
        """
        answer: Job = self._ask("experiments.conduct", {"request": request})
        return answer

    def index(self) -> tuple[str, ...]:
        """List the experiments by name, the newest first."""
        answer: tuple[str, ...] = self._ask("experiments.index", {})
        return answer

    def show(self, experiment: str) -> DescribedExperiment:
        """Show an experiment's plan and its runs; `latest` is the newest."""
        answer: DescribedExperiment = self._ask("experiments.show", {"experiment": experiment})
        return answer

    def report(self, experiment: str) -> ReportedExperiment:
        """Report an experiment's results so far, beside the published figures."""
        answer: ReportedExperiment = self._ask("experiments.report", {"experiment": experiment})
        return answer


class Exports(Group):
    """Operations on exports."""

    def answers(self, run: str, form: Literal['jsonl', 'hotpotqa', 'musique'] = 'jsonl') -> Iterator[bytes]:
        """Give a run's answers, and the chains and paragraphs behind them, as lines of a file in that form.

        form: `jsonl` has everything recorded of each question, one JSON object a line; the others are what those datasets'
        official evaluation scripts read.
        """
        answer: Iterator[bytes] = self._ask("exports.answers", {"run": run, "form": form})
        return answer

    def files(self, run: str) -> Iterator[bytes]:
        """Give a run's answers as BrowseComp-Plus' script reads them: a line for each file, with its name and its text."""
        answer: Iterator[bytes] = self._ask("exports.files", {"run": run})
        return answer


class Forks(Group):
    """Operations on forks."""

    def fork(self, request: ForkRequest) -> ForkedRun:
        """Start a new run that takes over recorded steps of another one and computes only what follows."""
        answer: ForkedRun = self._ask("forks.fork", {"request": request})
        return answer

    def parts(self, run: str, question: str, step: int) -> StepParts:
        """Give what of a step a fork can edit, and with which model and settings the fork would go on."""
        answer: StepParts = self._ask("forks.parts", {"run": run, "question": question, "step": step})
        return answer


class Jobs(Group):
    """Operations on jobs."""

    def index(self, states: Sequence[JobState] = (), limit: int = 100, after: str | None = None) -> JobPage:
        """List jobs, the newest first; after: the job behind which the page begins."""
        answer: JobPage = self._ask("jobs.index", {"states": states, "limit": limit, "after": after})
        return answer

    def show(self, job: str) -> Job:
        """Show a job: how far it is, and what it came to."""
        answer: Job = self._ask("jobs.show", {"job": job})
        return answer

    def cancel(self, job: str) -> Job:
        """Cancel a job that hasn't ended; nothing of it remains."""
        answer: Job = self._ask("jobs.cancel", {"job": job})
        return answer


class Judging(Group):
    """Operations on judging."""

    def begin(self, judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[BegunJudge, ...]:
        """Have language models grade the answers of a run, each in a run of its own; all of them begin, or none.

        models: the judges, in place of the request's. labels: people's labels of the answers; they have to be such that the
        judges can be compared with them.
        """
        answer: tuple[BegunJudge, ...] = self._ask("judging.begin", {"judge": judge, "models": models, "labels": labels})
        return answer

    def estimate(self, judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[Estimate, ...]:
        """Say what each judge's run may take and cost, and don't submit it."""
        answer: tuple[Estimate, ...] = self._ask("judging.estimate", {"judge": judge, "models": models, "labels": labels})
        return answer

    def calibration(self, run: str, labels: Path) -> RunCalibration:
        """Compare the judges of a run with people's labels of its answers; labels: their file."""
        answer: RunCalibration = self._ask("judging.calibration", {"run": run, "labels": labels})
        return answer


class Knowledge(Group):
    """Operations on knowledge."""

    def index(self) -> tuple[SourceState, ...]:
        """List the knowledge sources, and which of them are built."""
        answer: tuple[SourceState, ...] = self._ask("knowledge.index", {})
        return answer

    def show(self, source: str) -> SourceState:
        """Show a knowledge source."""
        answer: SourceState = self._ask("knowledge.show", {"source": source})
        return answer

    def query(self, source: str, text: str, other: str = '') -> tuple[Hit, ...]:
        """Say what a source knows of a text, the best first; other: a second text, for sources that connect two."""
        answer: tuple[Hit, ...] = self._ask("knowledge.query", {"source": source, "text": text, "other": other})
        return answer


class Live(Group):
    """Operations on live."""

    def run_events(self, run: str, after: str | None = None) -> Iterable[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended]:
        """Follow a run: what is recorded of it from the beginning, then what happens, until it ends.

        after: the id of the last event that was read, behind which to go on; a header `Last-Event-ID` goes before it.
        """
        answer: Iterable[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended] = self._ask("live.run_events", {"run": run, "after": after})
        return answer

    def question_events(self, run: str, question: str, after: str | None = None) -> Iterable[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended]:
        """Follow one question of a run, by its id or its number from 1, until it ends or is blocked."""
        answer: Iterable[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended] = self._ask("live.question_events", {"run": run, "question": question, "after": after})
        return answer


class Models(Group):
    """Operations on models."""

    def index(self) -> tuple[ListedModel, ...]:
        """List the models: built-in ones, and those of the server's `models.toml`."""
        answer: tuple[ListedModel, ...] = self._ask("models.index", {})
        return answer

    def show(self, model: str) -> tuple[DescribedModel, ...]:
        """Show the models of a name, which may be of several kinds: their settings, and what they can do."""
        answer: tuple[DescribedModel, ...] = self._ask("models.show", {"model": model})
        return answer


class Plans(Group):
    """Operations on plans."""

    def show(self, run: str) -> RunPlan:
        """Show a run's plan, sealed before its first step, and where the run departed from it."""
        answer: RunPlan = self._ask("plans.show", {"run": run})
        return answer

    def reporting(self, run: str, dataset: str | None = None) -> tuple[str, ...]:
        """Say what stands below a run's scores: what was planned of them; dataset: by whose rules they are, if named."""
        answer: tuple[str, ...] = self._ask("plans.reporting", {"run": run, "dataset": dataset})
        return answer


class Progress(Group):
    """Operations on progress."""

    def reading(self, run: str) -> RunReading:
        """Read how far a run is: its questions and steps, what holds it back, and its scores so far."""
        answer: RunReading = self._ask("progress.reading", {"run": run})
        return answer

    def reasons(self, run: str) -> tuple[Cause, ...]:
        """Say why questions of a run failed or are blocked, the most frequent cause first."""
        answer: tuple[Cause, ...] = self._ask("progress.reasons", {"run": run})
        return answer

    def broker(self) -> Broker:
        """Say whether Redis answers, which tells workers of steps."""
        answer: Broker = self._ask("progress.broker", {})
        return answer


class Projects(Group):
    """Operations on projects."""

    def index(self) -> tuple[ProjectRecord, ...]:
        """List projects with what they may use, and their quotas."""
        answer: tuple[ProjectRecord, ...] = self._ask("projects.index", {})
        return answer

    def create(self, new: NewProject) -> ProjectRecord:
        """Make a project, which may use none of the corpora of others and no models but those named."""
        answer: ProjectRecord = self._ask("projects.create", {"new": new})
        return answer

    def change(self, project: str, changes: Changes) -> ProjectRecord:
        """Change what a project may use, or its quotas."""
        answer: ProjectRecord = self._ask("projects.change", {"project": project, "changes": changes})
        return answer


class Pruning(Group):
    """Operations on pruning."""

    def choose(self, runs: Sequence[str] = (), older_than: float | None = None) -> PrunedRuns:
        """Say which runs would be removed, first those whose removal was interrupted, and how large they are.

        older_than: takes all that ended at least this many days ago too.
        """
        answer: PrunedRuns = self._ask("pruning.choose", {"runs": runs, "older_than": older_than})
        return answer

    def prune(self, runs: Sequence[str]) -> Pruned:
        """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

        A run that hasn't ended is refused: cancel it first. Those that aren't there any more are left out, so that the same
        request completes a removal that was interrupted.
        """
        answer: Pruned = self._ask("pruning.prune", {"runs": runs})
        return answer


class Questions(Group):
    """Operations on questions."""

    def index(self, run: str, status: Sequence[QuestionStatus] = (), limit: int = 100, after: str | None = None) -> QuestionListPage:
        """List a run's questions in their order.

        status: those of any of these, or all; after: the question behind which the page begins, by its id or number.
        """
        answer: QuestionListPage = self._ask("questions.index", {"run": run, "status": status, "limit": limit, "after": after})
        return answer

    def show(self, run: str, question: str) -> ShownQuestion:
        """Show how a question was answered: each step with what there is to show of it, the answer and what is said of it.

        question: its id or, where none has it, its number in the run, from 1.
        """
        answer: ShownQuestion = self._ask("questions.show", {"run": run, "question": question})
        return answer

    def trace(self, run: str, question: str) -> dict[str, Any]:
        """Give all that is recorded of a question: its answer, its scores, and each step with its request and result."""
        answer: dict[str, Any] = self._ask("questions.trace", {"run": run, "question": question})
        return answer

    def place(self, run: str, question: str) -> QuestionPlace:
        """Say which question of its run this is, and which stand before and behind it."""
        answer: QuestionPlace = self._ask("questions.place", {"run": run, "question": question})
        return answer

    def times(self, run: str, question: str) -> tuple[StepTimes, ...]:
        """Say when each step of a question was asked for, begun and ended, and which were asked for together."""
        answer: tuple[StepTimes, ...] = self._ask("questions.times", {"run": run, "question": question})
        return answer

    def step(self, run: str, question: str, step: int) -> StepRecord:
        """Show how a step was carried out: executions, what the model was shown, what it cost and what seals it."""
        answer: StepRecord = self._ask("questions.step", {"run": run, "question": question, "step": step})
        return answer

    def prompt(self, run: str, question: str, step: int) -> StepPrompt:
        """Give the exact prompt of a step, byte for byte as the model saw it."""
        answer: StepPrompt = self._ask("questions.prompt", {"run": run, "question": question, "step": step})
        return answer


class Repeats(Group):
    """Operations on repeats."""

    def origin(self, run: str) -> Repeating:
        """Say whose steps a run repeats, if it repeats any."""
        answer: Repeating = self._ask("repeats.origin", {"run": run})
        return answer

    def begin(self, run: str, *, share: float = 0.02, seed: int = 0, kinds: Sequence[str] = ()) -> RepeatedRun:
        """Carry out some steps of a run again, in a run of their own.

        share: of the questions of which a step is repeated; seed: draws the questions and their steps; kinds: of the steps
        that are drawn from, all that language models carry out by default.
        """
        answer: RepeatedRun = self._ask("repeats.begin", {"run": run, "share": share, "seed": seed, "kinds": kinds})
        return answer

    def show(self, run: str) -> RepeatReport:
        """Say what came out otherwise in a run that repeats steps of another one."""
        answer: RepeatReport = self._ask("repeats.show", {"run": run})
        return answer


class Replays(Group):
    """Operations on replays."""

    def show(self, run: str) -> ReplayedRun:
        """Run the system's code over a run's recorded steps, and report where it diverges; nothing is changed."""
        answer: ReplayedRun = self._ask("replays.show", {"run": run})
        return answer


class Reports(Group):
    """Operations on reports."""

    def page(self, run: str) -> Iterator[bytes]:
        """Give a run as one HTML page: configuration, scores, and the reasoning behind every answer."""
        answer: Iterator[bytes] = self._ask("reports.page", {"run": run})
        return answer


class Rethinking(Group):
    """Operations on rethinking."""

    def show(self, runs: Sequence[str]) -> ComparedRuns:
        """Compare runs of `rethinking` and its baselines with one another and with what the paper reports."""
        answer: ComparedRuns = self._ask("rethinking.show", {"runs": runs})
        return answer

    def page(self, runs: Sequence[str]) -> Iterator[bytes]:
        """Give the same as one HTML page, with the figure and each run's configuration."""
        answer: Iterator[bytes] = self._ask("rethinking.page", {"runs": runs})
        return answer


class Runs(Group):
    """Operations on runs."""

    def index(self, filters: Sequence[str] = (), limit: int | None = None, after: str | None = None, order: Literal['newest', 'oldest'] = 'newest') -> RunListPage:
        """List runs, the newest first, or the oldest.

        filters: `KEY=VALUE` or a text, all of which have to hold; after: the run behind which the page begins.
        """
        answer: RunListPage = self._ask("runs.index", {"filters": filters, "limit": limit, "after": after, "order": order})
        return answer

    def show(self, run: str) -> RunDetails:
        """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
        answer: RunDetails = self._ask("runs.show", {"run": run})
        return answer

    def overview(self, run: str) -> RunOverview:
        """Show a run at a glance: its state, its scores so far, what went wrong, its configuration."""
        answer: RunOverview = self._ask("runs.overview", {"run": run})
        return answer

    def submit(self, request: RunRequest) -> Submitted:
        """Submit a run to the queue. Everything is checked before anything is written."""
        answer: Submitted = self._ask("runs.submit", {"request": request})
        return answer

    def estimate(self, request: RunRequest) -> Estimate:
        """Say what a run may take and cost, and don't submit it."""
        answer: Estimate = self._ask("runs.estimate", {"request": request})
        return answer

    def pause(self, run: str) -> ControlledRun:
        """Pause a run: no further step begins; steps under way finish and are recorded."""
        answer: ControlledRun = self._ask("runs.pause", {"run": run})
        return answer

    def resume(self, run: str) -> ControlledRun:
        """Continue a paused run, and try its blocked questions again."""
        answer: ControlledRun = self._ask("runs.resume", {"run": run})
        return answer

    def retry(self, run: str, *, failed: bool = True, blocked: bool = True) -> RetriedRun:
        """Try a run's failed and blocked questions again, from the step that they stopped at."""
        answer: RetriedRun = self._ask("runs.retry", {"run": run, "failed": failed, "blocked": blocked})
        return answer

    def prioritize(self, run: str, priority: int) -> PrioritizedRun:
        """Have a run's questions begun before those of runs with a lower number."""
        answer: PrioritizedRun = self._ask("runs.prioritize", {"run": run, "priority": priority})
        return answer

    def cancel(self, run: str) -> ControlledRun:
        """End a run permanently; its record stays."""
        answer: ControlledRun = self._ask("runs.cancel", {"run": run})
        return answer

    def label(self, run: str, *, name: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()) -> LabelledRun:
        """Name and tag a run; name: its new one, empty to take the former one away, none to leave it."""
        answer: LabelledRun = self._ask("runs.label", {"run": run, "name": name, "add": add, "remove": remove})
        return answer

    def find(self, run: str) -> FoundRun:
        """Find a run by its id, the beginning of it, its name, or `latest`."""
        answer: FoundRun = self._ask("runs.find", {"run": run})
        return answer

    def namesakes(self, run: str) -> tuple[str, ...]:
        """List the other runs that have a run's name, so that it finds none of them."""
        answer: tuple[str, ...] = self._ask("runs.namesakes", {"run": run})
        return answer


class Scores(Group):
    """Operations on scores."""

    def show(self, run: str, dataset: str | None = None, official: Path | None = None) -> JudgedScores:
        """Score a run as it stands, with 95 % confidence intervals; a question that isn't finished counts 0.

        dataset: of the questions, for a run on processed files that was submitted without naming it; official: that
        dataset's own file, which has all answers.
        """
        answer: JudgedScores = self._ask("scores.show", {"run": run, "dataset": dataset, "official": official})
        return answer


class Summaries(Group):
    """Operations on summaries."""

    def index(self, run: str, outcome: Sequence[Literal['right', 'partly', 'wrong', 'unscored', 'failed', 'cancelled']] = (), cause: Sequence[Literal['no-answer', 'answer-form-only', 'reader-wrong', 'limit', 'gold-never-found', 'found-but-not-shown', 'contradicted', 'shown-but-not-used', 'unexplained']] = (), trait: Sequence[Literal['gold-missing', 'limited', 'retried', 'slow', 'long', 'costly']] = (), status: Sequence[QuestionStatus] = (), text: str = '', order: Literal['position', 'score', '-score', 'steps', '-steps', 'time', '-time', 'cost', '-cost'] = 'position', limit: int = 100, after: str | None = None) -> QuestionSummaries:
        """List a run's questions by how they came out, with the numbers of each sort.

        outcome, cause, status: those of any of these; trait: those with all of these; text: stands in the question, its id
        or its answer. order: that of their places, or by F1, steps, time or cost, the largest first with a minus: then the
        list has those alone that have ended. after: the question behind which the page begins, by its id or number.
        """
        answer: QuestionSummaries = self._ask("summaries.index", {"run": run, "outcome": outcome, "cause": cause, "trait": trait, "status": status, "text": text, "order": order, "limit": limit, "after": after})
        return answer

    def standings(self, runs: Sequence[str]) -> tuple[RunStanding, ...]:
        """Say how these runs stand: their scores, how fast they are, what they took and who asked for them.

        runs: their ids, 100 at most.
        """
        answer: tuple[RunStanding, ...] = self._ask("summaries.standings", {"runs": runs})
        return answer


class Systems(Group):
    """Operations on systems."""

    def index(self) -> tuple[ListedSystem, ...]:
        """List the systems."""
        answer: tuple[ListedSystem, ...] = self._ask("systems.index", {})
        return answer

    def show(self, system: str) -> DescribedSystem:
        """Show a system: all settings with their defaults and meanings."""
        answer: DescribedSystem = self._ask("systems.show", {"system": system})
        return answer


class Tokens(Group):
    """Operations on tokens."""

    def create(self, name: str, scopes: Sequence[Scope], project: str | None = None, days: float | None = None) -> NewToken:
        """Make a token. Its secret is in the answer, and shown nowhere else.

        scopes: what it allows, each with those before it; project: the own one where none is named; days: until it expires,
        never where none are given.
        """
        answer: NewToken = self._ask("tokens.create", {"name": name, "scopes": scopes, "project": project, "days": days})
        return answer

    def index(self) -> tuple[TokenRecord, ...]:
        """List tokens, the newest first, those that expired or were revoked too."""
        answer: tuple[TokenRecord, ...] = self._ask("tokens.index", {})
        return answer

    def revoke(self, token: str) -> RevokedToken:
        """Revoke a token for good; token: its id. Processes of the service take it for a few more seconds."""
        answer: RevokedToken = self._ask("tokens.revoke", {"token": token})
        return answer


class Uploads(Group):
    """Operations on uploads."""

    def file(self, digest: str, name: str | None = None) -> UploadedFile:
        """Say whether a file is there, by its digest (`sha256:HEX`), and by its name where one is given."""
        answer: UploadedFile = self._ask("uploads.file", {"digest": digest, "name": name})
        return answer

    def begin(self, digest: str, name: str, bytes: int) -> Upload:
        """Begin to upload a file in pieces, or go on with it: the answer says where.

        bytes: the size of the whole file. Each piece is a PATCH; with the last one the file is complete.
        """
        answer: Upload = self._ask("uploads.begin", {"digest": digest, "name": name, "bytes": bytes})
        return answer

    def show(self, upload: str) -> Upload:
        """Say how much of a file has come."""
        answer: Upload = self._ask("uploads.show", {"upload": upload})
        return answer

    def drop(self, upload: str) -> Upload:
        """Drop what has come of a file."""
        answer: Upload = self._ask("uploads.drop", {"upload": upload})
        return answer


class Verdicts(Group):
    """Operations on verdicts."""

    def show(self, run: str, *, per_question: bool = False) -> RunVerdicts:
        """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

        per_question: with the verdicts on each question.
        """
        answer: RunVerdicts = self._ask("verdicts.show", {"run": run, "per_question": per_question})
        return answer


class Whoami(Group):
    """Operations on whoami."""

    def show(self) -> WhoAmI:
        """Say who asks, in which project, and what is allowed."""
        answer: WhoAmI = self._ask("whoami.show", {})
        return answer


class Workers(Group):
    """Operations on workers."""

    def index(self) -> WorkerList:
        """List the workers of all hosts, and maintenance processes; of what they are doing, what the project's runs ask."""
        answer: WorkerList = self._ask("workers.index", {})
        return answer

    def queues(self) -> QueueList:
        """List what waits in the queues, who carries it out and how fast, and what holds it back, of the project's runs."""
        answer: QueueList = self._ask("workers.queues", {})
        return answer


class AsyncActivities(AsyncGroup):
    """Operations on activities."""

    async def index(self, limit: int = 100, before: int | None = None) -> tuple[ActivityRecord, ...]:
        """List what was asked for that changes anything, the newest first; before: only what came before this one."""
        answer: tuple[ActivityRecord, ...] = await self._ask("activities.index", {"limit": limit, "before": before})
        return answer


class AsyncAnnotations(AsyncGroup):
    """Operations on annotations."""

    async def chains(self, run: str, *, size: int = 40, seed: int = 0) -> SampledChains:
        """Draw chains of thought of a run, for a person to judge their sentences; the same for the same seed."""
        answer: SampledChains = await self._ask("annotations.chains", {"run": run, "size": size, "seed": seed})
        return answer

    async def marks(self, run: str, annotator: str | None = None) -> tuple[SentenceMark, ...]:
        """List which sentences of a run people have marked as true or not; annotator: only the marks of this one."""
        answer: tuple[SentenceMark, ...] = await self._ask("annotations.marks", {"run": run, "annotator": annotator})
        return answer

    async def mark(self, run: str, marks: Sequence[SentenceMark]) -> int:
        """Store marks of sentences, each in place of its annotator's former one; returns how many these are."""
        answer: int = await self._ask("annotations.mark", {"run": run, "marks": marks})
        return answer

    async def forget(self, run: str, *, question: str, position: int, annotator: str) -> None:
        """Take away an annotator's mark of a sentence; question: its id; position: of the sentence in its chain, from 0."""
        answer: None = await self._ask("annotations.forget", {"run": run, "question": question, "position": position, "annotator": annotator})
        return answer

    async def fill_in(self, run: str, *, annotator: str, rows: Mapping[str, SentenceRow]) -> AnnotationSummary:
        """Store the marks of a file's rows that are filled in, all or none.

        rows: by where each stands in its file, for what is said of those that can't be used.
        """
        answer: AnnotationSummary = await self._ask("annotations.fill_in", {"run": run, "annotator": annotator, "rows": rows})
        return answer

    async def summary(self, run: str, *, annotator: str, questions: Sequence[str]) -> AnnotationSummary:
        """Say how far an annotator is with the chains of these questions, and what all annotators found in the run."""
        answer: AnnotationSummary = await self._ask("annotations.summary", {"run": run, "annotator": annotator, "questions": questions})
        return answer


class AsyncAsking(AsyncGroup):
    """Operations on asking."""

    def ask(self, request: AskRequest) -> AsyncIterator[Asked | Token | StepEnded | Answer | End | None]:
        """Answer one question ahead of all that is queued: tell of its steps as they end, and of what they write.

        Whoever hangs up before the end cancels the run; its record stays. Within a process, None says that nothing has
        happened for a while.
        """
        return self._follow("asking.ask", {"request": request})

    async def begin(self, request: AskRequest) -> Asked:
        """Have a question answered ahead of all that is queued, without waiting for it."""
        answer: Asked = await self._ask("asking.begin", {"request": request})
        return answer

    async def index(self, limit: int = 20, after: str | None = None) -> AskedPage:
        """List the questions that were asked alone, the newest first; after: the run behind which the page begins."""
        answer: AskedPage = await self._ask("asking.index", {"limit": limit, "after": after})
        return answer

    async def choices(self) -> AskChoices:
        """Say which systems, corpora and models a question can be asked of."""
        answer: AskChoices = await self._ask("asking.choices", {})
        return answer


class AsyncAudits(AsyncGroup):
    """Operations on audits."""

    async def seals(self, run: str) -> Seals:
        """Say what of a run is sealed, by which digests, and since when; nothing is computed again."""
        answer: Seals = await self._ask("audits.seals", {"run": run})
        return answer

    async def verify(self, run: str, *, digest: str | None = None, plan: str | None = None) -> Verification:
        """Compute all digests of a run again, and name what was changed, removed, added or reordered.

        digest, plan: the run's and its plan's, as they were noted down once.
        """
        answer: Verification = await self._ask("audits.verify", {"run": run, "digest": digest, "plan": plan})
        return answer

    async def verify_bundle(self, bundle: Path, *, digest: str | None = None, plan: str | None = None) -> Verification:
        """Do the same for a run's bundle; bundle: a file that `audit export` wrote."""
        answer: Verification = await self._ask("audits.verify_bundle", {"bundle": bundle, "digest": digest, "plan": plan})
        return answer

    def bundle(self, run: str) -> AsyncIterator[bytes]:
        """Give all that is recorded of a run as one file: JSON Lines under Zstandard."""
        return self._follow("audits.bundle", {"run": run})

    async def provenance(self, run: str, question: str) -> dict[str, Any]:
        """Give a question as W3C PROV-JSON; question: its id, or its number in the run, from 1."""
        answer: dict[str, Any] = await self._ask("audits.provenance", {"run": run, "question": question})
        return answer

    async def prompt(self, step: str) -> StepPrompt:
        """Give the exact prompt of a step, by its id in the table `steps`."""
        answer: StepPrompt = await self._ask("audits.prompt", {"step": step})
        return answer


class AsyncCauseLabels(AsyncGroup):
    """Operations on causelabels."""

    async def cases(self, run: str, *, size: int = 40, seed: int = 0) -> tuple[Case, ...]:
        """Draw wrong answers of a run, for a person to label; the same for the same seed."""
        answer: tuple[Case, ...] = await self._ask("cause_labels.cases", {"run": run, "size": size, "seed": seed})
        return answer

    async def labels(self, run: str, annotator: str | None = None) -> tuple[CauseLabel, ...]:
        """List what people say of the causes of a run's wrong answers; annotator: only the labels of this one."""
        answer: tuple[CauseLabel, ...] = await self._ask("cause_labels.labels", {"run": run, "annotator": annotator})
        return answer

    async def label(self, run: str, labels: Sequence[CauseLabel]) -> int:
        """Store labels, each in place of its annotator's former one; returns how many these are."""
        answer: int = await self._ask("cause_labels.label", {"run": run, "labels": labels})
        return answer

    async def forget(self, run: str, *, question: str, annotator: str) -> None:
        """Take away an annotator's label of the answer to a question, by its id."""
        answer: None = await self._ask("cause_labels.forget", {"run": run, "question": question, "annotator": annotator})
        return answer

    async def fill_in(self, run: str, *, annotator: str, rows: Mapping[str, CauseRow]) -> LabellingSummary:
        """Store the labels of a file's rows that are filled in, all or none.

        rows: by where each stands in its file, for what is said of those that can't be used.
        """
        answer: LabellingSummary = await self._ask("cause_labels.fill_in", {"run": run, "annotator": annotator, "rows": rows})
        return answer

    async def summary(self, run: str, *, annotator: str, questions: Sequence[str]) -> LabellingSummary:
        """Say how far an annotator is with the answers to these questions."""
        answer: LabellingSummary = await self._ask("cause_labels.summary", {"run": run, "annotator": annotator, "questions": questions})
        return answer


class AsyncComparisons(AsyncGroup):
    """Operations on comparisons."""

    async def show(self, runs: Sequence[str], *, against: str | None = None, metrics: Sequence[str] = ()) -> Comparison:
        """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

        against: one of them, with which alone the others are compared. metrics: the first one decides; the main scores that
        all runs have where none is named.
        """
        answer: Comparison = await self._ask("comparisons.show", {"runs": runs, "against": against, "metrics": metrics})
        return answer

    async def questions(self, first: str, second: str, *, metric: str = '', outcome: Literal['both', 'first', 'second', 'neither', 'differ'] = 'differ', limit: int = 100, after: str | None = None, around: str | None = None) -> PairedQuestions:
        """List the questions of two runs by who answered them right, and say how many there are of each outcome.

        metric: what decides; the first main score that both runs have where none is named. after: the question behind which
        the list begins; around: one whose neighbours in the whole list are told, by id.
        """
        answer: PairedQuestions = await self._ask("comparisons.questions", {"first": first, "second": second, "metric": metric, "outcome": outcome, "limit": limit, "after": after, "around": around})
        return answer

    async def question(self, question: str, first: str, second: str, *, start: int = 0, limit: int = 20) -> SideBySide:
        """Show two runs side by side on one question: their steps aligned, and what only one of them has.

        question: its id or, where none has it, its number in the first run, from 1. start: the row that is shown first.
        """
        answer: SideBySide = await self._ask("comparisons.question", {"question": question, "first": first, "second": second, "start": start, "limit": limit})
        return answer


class AsyncCorpora(AsyncGroup):
    """Operations on corpora."""

    async def make(self, request: IndexRequest) -> Job:
        """Queue a corpus to be made of uploaded files; one of that name is replaced once the new one is complete.

        The same request again makes nothing more.
        """
        answer: Job = await self._ask("corpora.make", {"request": request})
        return answer

    async def index(self) -> tuple[ListedCorpus, ...]:
        """List the corpora by name."""
        answer: tuple[ListedCorpus, ...] = await self._ask("corpora.index", {})
        return answer

    async def show(self, corpus: str) -> ListedCorpus:
        """Show a corpus."""
        answer: ListedCorpus = await self._ask("corpora.show", {"corpus": corpus})
        return answer

    async def search(self, corpus: str, query: str, k: int = 10, field: Literal['all', 'title'] = 'all', *, distinct: bool = False) -> Found:
        """Search a corpus by hand.

        field: what the query is compared with, title and text or the title alone; distinct: paragraphs of the same text
        count as one.
        """
        answer: Found = await self._ask("corpora.search", {"corpus": corpus, "query": query, "k": k, "field": field, "distinct": distinct})
        return answer

    async def paragraph(self, corpus: str, paragraph: str) -> ShownParagraph:
        """Show a paragraph of a corpus, by its id there."""
        answer: ShownParagraph = await self._ask("corpora.paragraph", {"corpus": corpus, "paragraph": paragraph})
        return answer

    async def uses(self, digest: str, limit: int = 50, after: str | None = None) -> ParagraphUses:
        """List the questions whose searches found a paragraph, the latest first; digest: that of its title and text."""
        answer: ParagraphUses = await self._ask("corpora.uses", {"digest": digest, "limit": limit, "after": after})
        return answer

    async def remove(self, corpus: str) -> ListedCorpus:
        """Remove a corpus for good, unless a run that hasn't ended searches it."""
        answer: ListedCorpus = await self._ask("corpora.remove", {"corpus": corpus})
        return answer


class AsyncDatasets(AsyncGroup):
    """Operations on datasets."""

    async def index(self) -> tuple[ListedDataset, ...]:
        """List the datasets whose questions can be read."""
        answer: tuple[ListedDataset, ...] = await self._ask("datasets.index", {})
        return answer

    async def show(self, dataset: str) -> ListedDataset:
        """Show a dataset: its files, where to get them, its metric and its corpus."""
        answer: ListedDataset = await self._ask("datasets.show", {"dataset": dataset})
        return answer


class AsyncErrors(AsyncGroup):
    """Operations on errors."""

    async def show(self, run: str) -> RunErrors:
        """Say why a run's wrong answers are wrong, by rules over what is recorded."""
        answer: RunErrors = await self._ask("errors.show", {"run": run})
        return answer


class AsyncExperiments(AsyncGroup):
    """Operations on experiments."""

    async def conduct(self, request: ExperimentRequest) -> Job:
        """Queue an experiment to be conducted until its runs are done; one that was begun continues.

        What it came to, and meanwhile how far it is, is the job's result.
        """
        answer: Job = await self._ask("experiments.conduct", {"request": request})
        return answer

    async def index(self) -> tuple[str, ...]:
        """List the experiments by name, the newest first."""
        answer: tuple[str, ...] = await self._ask("experiments.index", {})
        return answer

    async def show(self, experiment: str) -> DescribedExperiment:
        """Show an experiment's plan and its runs; `latest` is the newest."""
        answer: DescribedExperiment = await self._ask("experiments.show", {"experiment": experiment})
        return answer

    async def report(self, experiment: str) -> ReportedExperiment:
        """Report an experiment's results so far, beside the published figures."""
        answer: ReportedExperiment = await self._ask("experiments.report", {"experiment": experiment})
        return answer


class AsyncExports(AsyncGroup):
    """Operations on exports."""

    def answers(self, run: str, form: Literal['jsonl', 'hotpotqa', 'musique'] = 'jsonl') -> AsyncIterator[bytes]:
        """Give a run's answers, and the chains and paragraphs behind them, as lines of a file in that form.

        form: `jsonl` has everything recorded of each question, one JSON object a line; the others are what those datasets'
        official evaluation scripts read.
        """
        return self._follow("exports.answers", {"run": run, "form": form})

    def files(self, run: str) -> AsyncIterator[bytes]:
        """Give a run's answers as BrowseComp-Plus' script reads them: a line for each file, with its name and its text."""
        return self._follow("exports.files", {"run": run})


class AsyncForks(AsyncGroup):
    """Operations on forks."""

    async def fork(self, request: ForkRequest) -> ForkedRun:
        """Start a new run that takes over recorded steps of another one and computes only what follows."""
        answer: ForkedRun = await self._ask("forks.fork", {"request": request})
        return answer

    async def parts(self, run: str, question: str, step: int) -> StepParts:
        """Give what of a step a fork can edit, and with which model and settings the fork would go on."""
        answer: StepParts = await self._ask("forks.parts", {"run": run, "question": question, "step": step})
        return answer


class AsyncJobs(AsyncGroup):
    """Operations on jobs."""

    async def index(self, states: Sequence[JobState] = (), limit: int = 100, after: str | None = None) -> JobPage:
        """List jobs, the newest first; after: the job behind which the page begins."""
        answer: JobPage = await self._ask("jobs.index", {"states": states, "limit": limit, "after": after})
        return answer

    async def show(self, job: str) -> Job:
        """Show a job: how far it is, and what it came to."""
        answer: Job = await self._ask("jobs.show", {"job": job})
        return answer

    async def cancel(self, job: str) -> Job:
        """Cancel a job that hasn't ended; nothing of it remains."""
        answer: Job = await self._ask("jobs.cancel", {"job": job})
        return answer


class AsyncJudging(AsyncGroup):
    """Operations on judging."""

    async def begin(self, judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[BegunJudge, ...]:
        """Have language models grade the answers of a run, each in a run of its own; all of them begin, or none.

        models: the judges, in place of the request's. labels: people's labels of the answers; they have to be such that the
        judges can be compared with them.
        """
        answer: tuple[BegunJudge, ...] = await self._ask("judging.begin", {"judge": judge, "models": models, "labels": labels})
        return answer

    async def estimate(self, judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[Estimate, ...]:
        """Say what each judge's run may take and cost, and don't submit it."""
        answer: tuple[Estimate, ...] = await self._ask("judging.estimate", {"judge": judge, "models": models, "labels": labels})
        return answer

    async def calibration(self, run: str, labels: Path) -> RunCalibration:
        """Compare the judges of a run with people's labels of its answers; labels: their file."""
        answer: RunCalibration = await self._ask("judging.calibration", {"run": run, "labels": labels})
        return answer


class AsyncKnowledge(AsyncGroup):
    """Operations on knowledge."""

    async def index(self) -> tuple[SourceState, ...]:
        """List the knowledge sources, and which of them are built."""
        answer: tuple[SourceState, ...] = await self._ask("knowledge.index", {})
        return answer

    async def show(self, source: str) -> SourceState:
        """Show a knowledge source."""
        answer: SourceState = await self._ask("knowledge.show", {"source": source})
        return answer

    async def query(self, source: str, text: str, other: str = '') -> tuple[Hit, ...]:
        """Say what a source knows of a text, the best first; other: a second text, for sources that connect two."""
        answer: tuple[Hit, ...] = await self._ask("knowledge.query", {"source": source, "text": text, "other": other})
        return answer


class AsyncLive(AsyncGroup):
    """Operations on live."""

    def run_events(self, run: str, after: str | None = None) -> AsyncIterator[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended]:
        """Follow a run: what is recorded of it from the beginning, then what happens, until it ends.

        after: the id of the last event that was read, behind which to go on; a header `Last-Event-ID` goes before it.
        """
        return self._follow("live.run_events", {"run": run, "after": after})

    def question_events(self, run: str, question: str, after: str | None = None) -> AsyncIterator[EventsStepEnded | QuestionChanged | Progressed | EventsToken | Ended]:
        """Follow one question of a run, by its id or its number from 1, until it ends or is blocked."""
        return self._follow("live.question_events", {"run": run, "question": question, "after": after})


class AsyncModels(AsyncGroup):
    """Operations on models."""

    async def index(self) -> tuple[ListedModel, ...]:
        """List the models: built-in ones, and those of the server's `models.toml`."""
        answer: tuple[ListedModel, ...] = await self._ask("models.index", {})
        return answer

    async def show(self, model: str) -> tuple[DescribedModel, ...]:
        """Show the models of a name, which may be of several kinds: their settings, and what they can do."""
        answer: tuple[DescribedModel, ...] = await self._ask("models.show", {"model": model})
        return answer


class AsyncPlans(AsyncGroup):
    """Operations on plans."""

    async def show(self, run: str) -> RunPlan:
        """Show a run's plan, sealed before its first step, and where the run departed from it."""
        answer: RunPlan = await self._ask("plans.show", {"run": run})
        return answer

    async def reporting(self, run: str, dataset: str | None = None) -> tuple[str, ...]:
        """Say what stands below a run's scores: what was planned of them; dataset: by whose rules they are, if named."""
        answer: tuple[str, ...] = await self._ask("plans.reporting", {"run": run, "dataset": dataset})
        return answer


class AsyncProgress(AsyncGroup):
    """Operations on progress."""

    async def reading(self, run: str) -> RunReading:
        """Read how far a run is: its questions and steps, what holds it back, and its scores so far."""
        answer: RunReading = await self._ask("progress.reading", {"run": run})
        return answer

    async def reasons(self, run: str) -> tuple[Cause, ...]:
        """Say why questions of a run failed or are blocked, the most frequent cause first."""
        answer: tuple[Cause, ...] = await self._ask("progress.reasons", {"run": run})
        return answer

    async def broker(self) -> Broker:
        """Say whether Redis answers, which tells workers of steps."""
        answer: Broker = await self._ask("progress.broker", {})
        return answer


class AsyncProjects(AsyncGroup):
    """Operations on projects."""

    async def index(self) -> tuple[ProjectRecord, ...]:
        """List projects with what they may use, and their quotas."""
        answer: tuple[ProjectRecord, ...] = await self._ask("projects.index", {})
        return answer

    async def create(self, new: NewProject) -> ProjectRecord:
        """Make a project, which may use none of the corpora of others and no models but those named."""
        answer: ProjectRecord = await self._ask("projects.create", {"new": new})
        return answer

    async def change(self, project: str, changes: Changes) -> ProjectRecord:
        """Change what a project may use, or its quotas."""
        answer: ProjectRecord = await self._ask("projects.change", {"project": project, "changes": changes})
        return answer


class AsyncPruning(AsyncGroup):
    """Operations on pruning."""

    async def choose(self, runs: Sequence[str] = (), older_than: float | None = None) -> PrunedRuns:
        """Say which runs would be removed, first those whose removal was interrupted, and how large they are.

        older_than: takes all that ended at least this many days ago too.
        """
        answer: PrunedRuns = await self._ask("pruning.choose", {"runs": runs, "older_than": older_than})
        return answer

    async def prune(self, runs: Sequence[str]) -> Pruned:
        """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

        A run that hasn't ended is refused: cancel it first. Those that aren't there any more are left out, so that the same
        request completes a removal that was interrupted.
        """
        answer: Pruned = await self._ask("pruning.prune", {"runs": runs})
        return answer


class AsyncQuestions(AsyncGroup):
    """Operations on questions."""

    async def index(self, run: str, status: Sequence[QuestionStatus] = (), limit: int = 100, after: str | None = None) -> QuestionListPage:
        """List a run's questions in their order.

        status: those of any of these, or all; after: the question behind which the page begins, by its id or number.
        """
        answer: QuestionListPage = await self._ask("questions.index", {"run": run, "status": status, "limit": limit, "after": after})
        return answer

    async def show(self, run: str, question: str) -> ShownQuestion:
        """Show how a question was answered: each step with what there is to show of it, the answer and what is said of it.

        question: its id or, where none has it, its number in the run, from 1.
        """
        answer: ShownQuestion = await self._ask("questions.show", {"run": run, "question": question})
        return answer

    async def trace(self, run: str, question: str) -> dict[str, Any]:
        """Give all that is recorded of a question: its answer, its scores, and each step with its request and result."""
        answer: dict[str, Any] = await self._ask("questions.trace", {"run": run, "question": question})
        return answer

    async def place(self, run: str, question: str) -> QuestionPlace:
        """Say which question of its run this is, and which stand before and behind it."""
        answer: QuestionPlace = await self._ask("questions.place", {"run": run, "question": question})
        return answer

    async def times(self, run: str, question: str) -> tuple[StepTimes, ...]:
        """Say when each step of a question was asked for, begun and ended, and which were asked for together."""
        answer: tuple[StepTimes, ...] = await self._ask("questions.times", {"run": run, "question": question})
        return answer

    async def step(self, run: str, question: str, step: int) -> StepRecord:
        """Show how a step was carried out: executions, what the model was shown, what it cost and what seals it."""
        answer: StepRecord = await self._ask("questions.step", {"run": run, "question": question, "step": step})
        return answer

    async def prompt(self, run: str, question: str, step: int) -> StepPrompt:
        """Give the exact prompt of a step, byte for byte as the model saw it."""
        answer: StepPrompt = await self._ask("questions.prompt", {"run": run, "question": question, "step": step})
        return answer


class AsyncRepeats(AsyncGroup):
    """Operations on repeats."""

    async def origin(self, run: str) -> Repeating:
        """Say whose steps a run repeats, if it repeats any."""
        answer: Repeating = await self._ask("repeats.origin", {"run": run})
        return answer

    async def begin(self, run: str, *, share: float = 0.02, seed: int = 0, kinds: Sequence[str] = ()) -> RepeatedRun:
        """Carry out some steps of a run again, in a run of their own.

        share: of the questions of which a step is repeated; seed: draws the questions and their steps; kinds: of the steps
        that are drawn from, all that language models carry out by default.
        """
        answer: RepeatedRun = await self._ask("repeats.begin", {"run": run, "share": share, "seed": seed, "kinds": kinds})
        return answer

    async def show(self, run: str) -> RepeatReport:
        """Say what came out otherwise in a run that repeats steps of another one."""
        answer: RepeatReport = await self._ask("repeats.show", {"run": run})
        return answer


class AsyncReplays(AsyncGroup):
    """Operations on replays."""

    async def show(self, run: str) -> ReplayedRun:
        """Run the system's code over a run's recorded steps, and report where it diverges; nothing is changed."""
        answer: ReplayedRun = await self._ask("replays.show", {"run": run})
        return answer


class AsyncReports(AsyncGroup):
    """Operations on reports."""

    def page(self, run: str) -> AsyncIterator[bytes]:
        """Give a run as one HTML page: configuration, scores, and the reasoning behind every answer."""
        return self._follow("reports.page", {"run": run})


class AsyncRethinking(AsyncGroup):
    """Operations on rethinking."""

    async def show(self, runs: Sequence[str]) -> ComparedRuns:
        """Compare runs of `rethinking` and its baselines with one another and with what the paper reports."""
        answer: ComparedRuns = await self._ask("rethinking.show", {"runs": runs})
        return answer

    def page(self, runs: Sequence[str]) -> AsyncIterator[bytes]:
        """Give the same as one HTML page, with the figure and each run's configuration."""
        return self._follow("rethinking.page", {"runs": runs})


class AsyncRuns(AsyncGroup):
    """Operations on runs."""

    async def index(self, filters: Sequence[str] = (), limit: int | None = None, after: str | None = None, order: Literal['newest', 'oldest'] = 'newest') -> RunListPage:
        """List runs, the newest first, or the oldest.

        filters: `KEY=VALUE` or a text, all of which have to hold; after: the run behind which the page begins.
        """
        answer: RunListPage = await self._ask("runs.index", {"filters": filters, "limit": limit, "after": after, "order": order})
        return answer

    async def show(self, run: str) -> RunDetails:
        """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
        answer: RunDetails = await self._ask("runs.show", {"run": run})
        return answer

    async def overview(self, run: str) -> RunOverview:
        """Show a run at a glance: its state, its scores so far, what went wrong, its configuration."""
        answer: RunOverview = await self._ask("runs.overview", {"run": run})
        return answer

    async def submit(self, request: RunRequest) -> Submitted:
        """Submit a run to the queue. Everything is checked before anything is written."""
        answer: Submitted = await self._ask("runs.submit", {"request": request})
        return answer

    async def estimate(self, request: RunRequest) -> Estimate:
        """Say what a run may take and cost, and don't submit it."""
        answer: Estimate = await self._ask("runs.estimate", {"request": request})
        return answer

    async def pause(self, run: str) -> ControlledRun:
        """Pause a run: no further step begins; steps under way finish and are recorded."""
        answer: ControlledRun = await self._ask("runs.pause", {"run": run})
        return answer

    async def resume(self, run: str) -> ControlledRun:
        """Continue a paused run, and try its blocked questions again."""
        answer: ControlledRun = await self._ask("runs.resume", {"run": run})
        return answer

    async def retry(self, run: str, *, failed: bool = True, blocked: bool = True) -> RetriedRun:
        """Try a run's failed and blocked questions again, from the step that they stopped at."""
        answer: RetriedRun = await self._ask("runs.retry", {"run": run, "failed": failed, "blocked": blocked})
        return answer

    async def prioritize(self, run: str, priority: int) -> PrioritizedRun:
        """Have a run's questions begun before those of runs with a lower number."""
        answer: PrioritizedRun = await self._ask("runs.prioritize", {"run": run, "priority": priority})
        return answer

    async def cancel(self, run: str) -> ControlledRun:
        """End a run permanently; its record stays."""
        answer: ControlledRun = await self._ask("runs.cancel", {"run": run})
        return answer

    async def label(self, run: str, *, name: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()) -> LabelledRun:
        """Name and tag a run; name: its new one, empty to take the former one away, none to leave it."""
        answer: LabelledRun = await self._ask("runs.label", {"run": run, "name": name, "add": add, "remove": remove})
        return answer

    async def find(self, run: str) -> FoundRun:
        """Find a run by its id, the beginning of it, its name, or `latest`."""
        answer: FoundRun = await self._ask("runs.find", {"run": run})
        return answer

    async def namesakes(self, run: str) -> tuple[str, ...]:
        """List the other runs that have a run's name, so that it finds none of them."""
        answer: tuple[str, ...] = await self._ask("runs.namesakes", {"run": run})
        return answer


class AsyncScores(AsyncGroup):
    """Operations on scores."""

    async def show(self, run: str, dataset: str | None = None, official: Path | None = None) -> JudgedScores:
        """Score a run as it stands, with 95 % confidence intervals; a question that isn't finished counts 0.

        dataset: of the questions, for a run on processed files that was submitted without naming it; official: that
        dataset's own file, which has all answers.
        """
        answer: JudgedScores = await self._ask("scores.show", {"run": run, "dataset": dataset, "official": official})
        return answer


class AsyncSummaries(AsyncGroup):
    """Operations on summaries."""

    async def index(self, run: str, outcome: Sequence[Literal['right', 'partly', 'wrong', 'unscored', 'failed', 'cancelled']] = (), cause: Sequence[Literal['no-answer', 'answer-form-only', 'reader-wrong', 'limit', 'gold-never-found', 'found-but-not-shown', 'contradicted', 'shown-but-not-used', 'unexplained']] = (), trait: Sequence[Literal['gold-missing', 'limited', 'retried', 'slow', 'long', 'costly']] = (), status: Sequence[QuestionStatus] = (), text: str = '', order: Literal['position', 'score', '-score', 'steps', '-steps', 'time', '-time', 'cost', '-cost'] = 'position', limit: int = 100, after: str | None = None) -> QuestionSummaries:
        """List a run's questions by how they came out, with the numbers of each sort.

        outcome, cause, status: those of any of these; trait: those with all of these; text: stands in the question, its id
        or its answer. order: that of their places, or by F1, steps, time or cost, the largest first with a minus: then the
        list has those alone that have ended. after: the question behind which the page begins, by its id or number.
        """
        answer: QuestionSummaries = await self._ask("summaries.index", {"run": run, "outcome": outcome, "cause": cause, "trait": trait, "status": status, "text": text, "order": order, "limit": limit, "after": after})
        return answer

    async def standings(self, runs: Sequence[str]) -> tuple[RunStanding, ...]:
        """Say how these runs stand: their scores, how fast they are, what they took and who asked for them.

        runs: their ids, 100 at most.
        """
        answer: tuple[RunStanding, ...] = await self._ask("summaries.standings", {"runs": runs})
        return answer


class AsyncSystems(AsyncGroup):
    """Operations on systems."""

    async def index(self) -> tuple[ListedSystem, ...]:
        """List the systems."""
        answer: tuple[ListedSystem, ...] = await self._ask("systems.index", {})
        return answer

    async def show(self, system: str) -> DescribedSystem:
        """Show a system: all settings with their defaults and meanings."""
        answer: DescribedSystem = await self._ask("systems.show", {"system": system})
        return answer


class AsyncTokens(AsyncGroup):
    """Operations on tokens."""

    async def create(self, name: str, scopes: Sequence[Scope], project: str | None = None, days: float | None = None) -> NewToken:
        """Make a token. Its secret is in the answer, and shown nowhere else.

        scopes: what it allows, each with those before it; project: the own one where none is named; days: until it expires,
        never where none are given.
        """
        answer: NewToken = await self._ask("tokens.create", {"name": name, "scopes": scopes, "project": project, "days": days})
        return answer

    async def index(self) -> tuple[TokenRecord, ...]:
        """List tokens, the newest first, those that expired or were revoked too."""
        answer: tuple[TokenRecord, ...] = await self._ask("tokens.index", {})
        return answer

    async def revoke(self, token: str) -> RevokedToken:
        """Revoke a token for good; token: its id. Processes of the service take it for a few more seconds."""
        answer: RevokedToken = await self._ask("tokens.revoke", {"token": token})
        return answer


class AsyncUploads(AsyncGroup):
    """Operations on uploads."""

    async def file(self, digest: str, name: str | None = None) -> UploadedFile:
        """Say whether a file is there, by its digest (`sha256:HEX`), and by its name where one is given."""
        answer: UploadedFile = await self._ask("uploads.file", {"digest": digest, "name": name})
        return answer

    async def begin(self, digest: str, name: str, bytes: int) -> Upload:
        """Begin to upload a file in pieces, or go on with it: the answer says where.

        bytes: the size of the whole file. Each piece is a PATCH; with the last one the file is complete.
        """
        answer: Upload = await self._ask("uploads.begin", {"digest": digest, "name": name, "bytes": bytes})
        return answer

    async def show(self, upload: str) -> Upload:
        """Say how much of a file has come."""
        answer: Upload = await self._ask("uploads.show", {"upload": upload})
        return answer

    async def drop(self, upload: str) -> Upload:
        """Drop what has come of a file."""
        answer: Upload = await self._ask("uploads.drop", {"upload": upload})
        return answer


class AsyncVerdicts(AsyncGroup):
    """Operations on verdicts."""

    async def show(self, run: str, *, per_question: bool = False) -> RunVerdicts:
        """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

        per_question: with the verdicts on each question.
        """
        answer: RunVerdicts = await self._ask("verdicts.show", {"run": run, "per_question": per_question})
        return answer


class AsyncWhoami(AsyncGroup):
    """Operations on whoami."""

    async def show(self) -> WhoAmI:
        """Say who asks, in which project, and what is allowed."""
        answer: WhoAmI = await self._ask("whoami.show", {})
        return answer


class AsyncWorkers(AsyncGroup):
    """Operations on workers."""

    async def index(self) -> WorkerList:
        """List the workers of all hosts, and maintenance processes; of what they are doing, what the project's runs ask."""
        answer: WorkerList = await self._ask("workers.index", {})
        return answer

    async def queues(self) -> QueueList:
        """List what waits in the queues, who carries it out and how fast, and what holds it back, of the project's runs."""
        answer: QueueList = await self._ask("workers.queues", {})
        return answer


class Groups:
    """All groups; door: carries their operations out."""

    def __init__(self, door: RemoteDoor) -> None:
        self.activities = Activities(door)
        self.annotations = Annotations(door)
        self.asking = Asking(door)
        self.audits = Audits(door)
        self.cause_labels = CauseLabels(door)
        self.comparisons = Comparisons(door)
        self.corpora = Corpora(door)
        self.datasets = Datasets(door)
        self.errors = Errors(door)
        self.experiments = Experiments(door)
        self.exports = Exports(door)
        self.forks = Forks(door)
        self.jobs = Jobs(door)
        self.judging = Judging(door)
        self.knowledge = Knowledge(door)
        self.live = Live(door)
        self.models = Models(door)
        self.plans = Plans(door)
        self.progress = Progress(door)
        self.projects = Projects(door)
        self.pruning = Pruning(door)
        self.questions = Questions(door)
        self.repeats = Repeats(door)
        self.replays = Replays(door)
        self.reports = Reports(door)
        self.rethinking = Rethinking(door)
        self.runs = Runs(door)
        self.scores = Scores(door)
        self.summaries = Summaries(door)
        self.systems = Systems(door)
        self.tokens = Tokens(door)
        self.uploads = Uploads(door)
        self.verdicts = Verdicts(door)
        self.whoami = Whoami(door)
        self.workers = Workers(door)


class AsyncGroups:
    """All groups; door: carries their operations out."""

    def __init__(self, door: RemoteDoor) -> None:
        self.activities = AsyncActivities(door)
        self.annotations = AsyncAnnotations(door)
        self.asking = AsyncAsking(door)
        self.audits = AsyncAudits(door)
        self.cause_labels = AsyncCauseLabels(door)
        self.comparisons = AsyncComparisons(door)
        self.corpora = AsyncCorpora(door)
        self.datasets = AsyncDatasets(door)
        self.errors = AsyncErrors(door)
        self.experiments = AsyncExperiments(door)
        self.exports = AsyncExports(door)
        self.forks = AsyncForks(door)
        self.jobs = AsyncJobs(door)
        self.judging = AsyncJudging(door)
        self.knowledge = AsyncKnowledge(door)
        self.live = AsyncLive(door)
        self.models = AsyncModels(door)
        self.plans = AsyncPlans(door)
        self.progress = AsyncProgress(door)
        self.projects = AsyncProjects(door)
        self.pruning = AsyncPruning(door)
        self.questions = AsyncQuestions(door)
        self.repeats = AsyncRepeats(door)
        self.replays = AsyncReplays(door)
        self.reports = AsyncReports(door)
        self.rethinking = AsyncRethinking(door)
        self.runs = AsyncRuns(door)
        self.scores = AsyncScores(door)
        self.summaries = AsyncSummaries(door)
        self.systems = AsyncSystems(door)
        self.tokens = AsyncTokens(door)
        self.uploads = AsyncUploads(door)
        self.verdicts = AsyncVerdicts(door)
        self.whoami = AsyncWhoami(door)
        self.workers = AsyncWorkers(door)
