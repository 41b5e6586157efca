"""A system as an environment for training: it asks, a model that is being trained writes, step by step.

Searches and all else are carried out as in `cotrail.run`; each text of the run's own language model is an action of the
trainer's. Episodes are independent, and thousands may be under way: between two actions one holds no thread.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.answers import Answered
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.binding import MODEL
from cotrail.core.calls import Call
from cotrail.core.history import Failed, Outcome, Step
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.questions import Question
from cotrail.core.replay import SystemBrokenError
from cotrail.core.results import Result, failure_of
from cotrail.engines.language_models.scripted import POLICY, PolicyModel
from cotrail.errors import CotrailError, InputError, ReplayMismatchError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.inprocess import AnyCorpus, AnySystem, InProcessQuestion, InProcessRun, loaded_engines, prepared_run
from cotrail.models.commands.submission import Submission
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.results.exporting import REWARD
from cotrail.services.results.training_data import prompt_messages
from cotrail.services.runs.importing import continues, saved, saved_question
from cotrail.tasks.engines import StepEngines


class Observation(Struct, frozen=True, kw_only=True):
    """What a trainer's model sees: the prompt to which it writes next, or how the episode ended.

    messages: the prompt as a chat; one of plain text is the user's. tools: that it may call. stop: the strings that end
    its text; max_tokens: of it. continues: whether the last message is the model's own, which it continues.
    reward: once done, by the environment's metric; None where the question has nothing to be rewarded by.
    """

    messages: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    stop: tuple[str, ...] = ()
    max_tokens: int = 0
    continues: bool = False
    done: bool = False
    reward: float | None = None
    answer: str = ""


class Environment:
    """Questions that a system answers with the texts of a model that is being trained.

    system, questions, corpus, fields: as for `cotrail.run`. reward: the metric that rewards an answer.
    record: a file that gets every episode that ends, which `cotrail import` takes into a store.
    Raises InputError and its kinds.
    """

    def __init__(
        self,
        system: AnySystem,
        questions: str | Path | Iterable[str | Mapping[str, Any]],
        *,
        corpus: AnyCorpus | None = None,
        reward: str = REWARD,
        record: str | Path | None = None,
        **fields: Any,
    ) -> None:
        if reward not in METRICS:
            raise InputError(f"there is no metric {reward!r:.100}; reward by the name of one: {', '.join(METRICS)}")
        self._run = InProcessRun(prepared_run(system, questions, corpus, POLICY, fields))
        self._reward = reward
        self._record = None if record is None else _Recorder(Path(record), self._run)

    def __len__(self) -> int:
        return len(self._run.questions)

    def episode(self, place: int) -> "Episode":
        """Begin an episode on the question at this place, from 0; raises InputError where there is none."""
        if not 0 <= place < len(self):
            raise InputError(f"there is no question {place}; places are from 0 to {len(self) - 1}")
        return Episode(self._run, self._run.questions[place], self._reward, self._record)


class Episode:
    """A question that is being answered. `seen` is what the model sees now; `act` gives what it wrote to that.

    One action at a time: an episode isn't for several threads.
    """

    def __init__(self, run: InProcessRun, question: Question, reward: str, record: "_Recorder | None") -> None:
        self._run = run
        self._reward = reward
        self._record = record
        self._asked = InProcessQuestion(run.plan, run.engines, question, Event())
        self._question = question
        self._going = self._asked.carried_out_whole(_of_policy)
        self._due: Step | None = None
        self.answered: Answered | None = None
        self.seen = self._advanced(None)

    def act(self, text: str, calls: Iterable[Mapping[str, Any]] = ()) -> Observation:
        """What follows the text that the model wrote; calls: of tools, as messages of a chat have them.

        The text may go on behind what the step asks for, as its stop string; what an engine would keep is kept.
        Raises InputError where the episode is done, and what keeps a step from being carried out, as in `cotrail.ask`.
        """
        if self._due is None:
            raise InputError("the episode is done; begin another one")
        if not isinstance(text, str):
            raise InputError(f"what the model wrote is a text, and not {text!r:.100}; give the text")
        action = self._due.action
        called = tuple(_called(each) for each in calls)
        engines = _WithPolicy(self._run, PolicyModel(text, called))
        try:
            written: Result = kind_of(action).carry_out(action, engines)
            written.check_recordable()
        except CotrailError as error:
            self.seen = self._advanced((failure_of(error), 0.0))
        else:
            self.seen = self._advanced((written, 0.0))
        return self.seen

    async def act_async(self, text: str, calls: Iterable[Mapping[str, Any]] = ()) -> Observation:
        """The same for asynchronous code: searches are carried out in a thread."""
        return await asyncio.to_thread(self.act, text, calls)

    def _advanced(self, outcome: tuple[Outcome, float] | None) -> Observation:
        try:
            self._due = next(self._going) if outcome is None else self._going.send(outcome)
        except StopIteration as stopped:
            return self._ended(self._asked.ended(stopped.value))
        except (SystemBrokenError, ReplayMismatchError) as error:
            return self._ended(self._asked.ended(Failed(failure_of(error))))
        action = self._due.action
        assert isinstance(action, Prompted)  # noqa: S101 - of these alone is the policy asked
        return Observation(
            messages=prompt_messages(action.prompt),
            tools=action.prompt.functions if action.calls else [],
            stop=action.stop,
            max_tokens=action.max_tokens,
            continues=action.prompt.continues_last_turn,
        )

    def _ended(self, traced: TracedQuestion) -> Observation:
        self._due, self.answered = None, self._run.scored(traced)
        if self._record is not None:
            self._record.add(self._question, traced)
        reward = self.answered.metrics.get(self._reward)
        return Observation(done=True, reward=reward, answer=self.answered.answer)


def _called(message: Mapping[str, Any]) -> Call:
    """A call as a message of a chat has it, whose arguments may be a text or an object."""
    try:
        name, arguments = message["function"]["name"], message["function"]["arguments"]
    except (KeyError, TypeError):
        raise InputError('a call is {"function": {"name": ..., "arguments": ...}}, as in a chat') from None
    return Call(name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))


def _of_policy(step: Step) -> bool:
    """Whether a step asks the run's own language model."""
    return isinstance(step.action, Prompted) and step.action.model == MODEL


class _WithPolicy(StepEngines):
    """The engines of a run, whose own language model has just written."""

    def __init__(self, run: InProcessRun, policy: PolicyModel) -> None:
        super().__init__(loaded_engines(), run.plan, Cancellation())
        self._policy = policy

    def language_model(self, role: str = MODEL) -> Any:
        return self._policy if role == MODEL else super().language_model(role)


class _Recorder:
    """A file of episodes in the form of `cotrail import`; those of one question after the first have numbers.

    One that is there is continued, without what a killed process left of a line, where it is of the same environment.
    """

    def __init__(self, path: Path, run: InProcessRun) -> None:
        self._path = path
        self._lock = Lock()
        self._used: set[str] = set()
        self._numbers: dict[str, count[int]] = {}
        try:
            with path.open("a+b") as file:
                file.seek(0)
                file.truncate(end := self._known(file, run.submission))
                file.writelines(saved(run.submission, ()) if not end else ())
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}); record elsewhere") from error

    def _known(self, file: BinaryIO, submission: Submission) -> int:
        """The end of the last whole line; raises InputError where the file is another's."""
        end = 0
        for place, line in enumerate(file):
            if not line.endswith(b"\n"):
                break
            if not place and not continues(line, submission):
                raise InputError(f"{self._path} has other episodes, or something else; record into another file")
            if place:
                self._used.add(msgspec.json.decode(line)["question"]["id"])
            end += len(line)
        return end

    def add(self, question: Question, traced: TracedQuestion) -> None:
        with self._lock, self._path.open("ab") as file:
            numbers = self._numbers.setdefault(question.id, count(1))
            names = (question.id if number == 1 else f"{question.id}#{number}" for number in numbers)
            name = next(each for each in names if each not in self._used)
            file.write(msgspec.json.encode(saved_question(replace(question, id=name), traced)) + b"\n")
