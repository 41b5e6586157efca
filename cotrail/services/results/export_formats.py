"""A run as one file that another program reads: each format is a record of `FORMATS`."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.prompts import Prompt, Turn
from cotrail.core.questions import Paragraph, passage_of
from cotrail.core.results import Generated
from cotrail.data.datasets.registry import DATASETS, scoring_of
from cotrail.data.datasets.spec import Scoring
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.supporting_paragraphs import (
    Fold,
    Key,
    content_of,
    counted,
    fold_of,
    gold_key,
    paragraph_keys,
)
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import MediaTypes, operation
from cotrail.services.results.exporting import REWARD, Source, json_line, rows
from cotrail.services.results.inspect_logs import inspect_log
from cotrail.services.results.verdicts import verdicts_by_question
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import scorer_of, without_scores
from cotrail.services.store import reading

# What models are trained on: what they were shown and what they wrote, as chats with a reward.

Message = dict[str, Any]
"""A message of a chat in OpenAI's form."""

ComparedTurn = tuple[str, str, list[Message]]
"""What of a message is compared: its role, its text, and its calls without their ids, which systems replace."""

INSERTED = "tool"
"""The role of what a system put behind a text that the model then continued, such as what a search found."""


class Chat(Struct, kw_only=True):
    """A conversation: steps whose prompts each continue the one before.

    messages: as they are exported; mask: for each, 1 where the model wrote it in one of these steps, and 0 elsewhere.
    shown: how the prompt of a step begins that continues it; stop: what ended the last text, which that may leave out.
    """

    tools: list[Message]
    messages: list[Message] = []
    mask: list[int] = []
    steps: list[int] = []
    shown: list[ComparedTurn] = []
    stop: str = ""

    def inserted(self, prompt: list[ComparedTurn]) -> str | None:
        """What a prompt has behind the last text in its turn; None where it doesn't continue this conversation."""
        *before, (role, text, calls) = self.shown
        same, rest = prompt[: len(before)], prompt[len(before) :]
        if same != before or not rest or (rest[0][0], rest[0][2]) != (role, calls) or not rest[0][1].startswith(text):
            return None
        return rest[0][1][len(text) :]

    def go_on(self, inserted: str, prompt: list[Message]) -> None:
        """Add what a prompt has in addition."""
        last, at = self.messages[-1], prompt[len(self.shown) - 1]
        if inserted.startswith(self.stop):
            inserted = inserted.removeprefix(self.stop)
        else:
            last["content"] = last["content"].removesuffix(self.stop)
        if "tool_calls" in last:
            last["tool_calls"] = at["tool_calls"]
        self.show([{"role": INSERTED, "content": inserted}] * bool(inserted) + prompt[len(self.shown) :])

    def show(self, messages: list[Message]) -> None:
        """Add messages of a prompt."""
        self.messages += messages
        self.mask += [0] * len(messages)

    def write(self, prompt: Prompt, result: Generated, sequence: int, *, by_model: bool) -> None:
        """Add what was written to a prompt."""
        message = Turn(role="assistant", calls=result.calls).message | {"content": result.text + result.stop}
        thoughts = {"reasoning_content": result.thoughts} if result.thoughts_are == "whole" else {}
        self.messages.append(message | thoughts)
        self.mask.append(int(by_model))
        self.steps.append(sequence)
        self.shown = [*map(_key, _messages(prompt.wrote(result.text, result.calls)))]
        self.stop = result.stop


def chat_lines(source: Source) -> Iterator[bytes]:
    """The conversations of each question, in the order in which they began."""
    if source.reward not in METRICS:
        raise InputError(f"there is no metric {source.reward!r}; reward by one of {', '.join(METRICS)}")
    score = scorer_of(source.record) or without_scores
    for question in source.questions:
        reward = score(question)[source.reward]
        for chat in conversations(question):
            yield json_line(
                {
                    "id": f"{question.key}.{chat.steps[-1]}",
                    "run": source.record.id,
                    "question_id": question.key,
                    "steps": chat.steps,
                    "messages": chat.messages,
                    "mask": chat.mask,
                    "tools": chat.tools,
                    "reward": reward,
                    "ended_by": question.ended_by,
                }
            )


def conversations(question: TracedQuestion) -> list[Chat]:
    """The conversations of a question; steps without a text, or that this version can't read, are in none."""
    begun: list[Chat] = []
    for step in question.steps:
        action = step.carried_out
        if isinstance(action, Prompted) and isinstance(step.result, Generated):
            prompt = seen_prompt(action, step.result)
            by_model = step.edit is None or step.edit.text is None
            _of(begun, prompt).write(prompt, step.result, step.sequence, by_model=by_model)
    return begun


def _of(begun: list[Chat], prompt: Prompt) -> Chat:
    """The latest conversation that a prompt continues, or one that it begins, which has all of it."""
    messages = _messages(prompt)
    keys = [*map(_key, messages)]
    for chat in reversed(begun):
        if (inserted := chat.inserted(keys)) is not None:
            chat.go_on(inserted, messages)
            return chat
    chat = Chat(tools=prompt.functions)
    chat.show(messages)
    begun.append(chat)
    return chat


def _messages(prompt: Prompt) -> list[Message]:
    """A prompt's turns; plain text, which no one speaks, is the user's."""
    messages = [{**message, "role": message["role"] or "user"} for message in prompt.messages]
    return [{name: value for name, value in message.items() if name != "carried"} for message in messages]


def _key(message: Message) -> ComparedTurn:
    return message["role"], message["content"], [call["function"] for call in message.get("tool_calls", ())]


# The official scripts of datasets.


class MusiquePrediction(Struct, frozen=True, kw_only=True):
    """An answer as MuSiQue's script reads it.

    predicted_support_idxs: within the dataset's own paragraphs, which a search of a corpus doesn't know.
    """

    id: str
    predicted_answer: str
    predicted_support_idxs: tuple[int, ...] = ()
    predicted_answerable: bool = True


class HotpotqaPredictions(Struct, frozen=True, kw_only=True):
    """Answers by question as HotpotQA's script reads them.

    sp: supporting facts, as the first sentence of each collected paragraph: cotrail retrieves whole paragraphs.
    """

    answer: Mapping[str, str]
    sp: Mapping[str, tuple[tuple[str, int], ...]]


def _musique(source: Source) -> Iterator[bytes]:
    for question in source.questions:
        yield json_line(MusiquePrediction(id=question.key, predicted_answer=_short(question)))


def _hotpotqa(source: Source) -> Iterator[bytes]:
    answers, facts = {}, {}
    for question in source.questions:
        answers[question.key] = _short(question)
        facts[question.key] = tuple((paragraph.title, 0) for paragraph in question.paragraphs)
    yield json_line(HotpotqaPredictions(answer=answers, sp=facts))


def _short(question: TracedQuestion) -> str:
    return question.stated or question.answer or ""


# Rankings and judgements in the forms of TREC, whose fields are separated by spaces.


def field(name: str) -> str:
    """An id as a field: `%`, white space and what can't be printed are percent-encoded, as in a URL."""
    return "".join(quote(each) if each in " %" or not each.isprintable() else each for each in name)


Topic = tuple[str, TracedQuestion, tuple[Paragraph, ...]]
"""The name of a topic, its question, and what was found."""


def _by_question(source: Source) -> Iterator[Topic]:
    fold = _fold(source.record)
    for question in source.questions:
        yield field(question.key), question, tuple(_collected(question, fold))


def _by_search(source: Source) -> Iterator[Topic]:
    for question in source.questions:
        for step in question.steps:
            if step.query is not None:
                found = tuple(hit.paragraph for hit in step.hits)
                yield f"{field(question.key)}.{step.sequence}", question, found


def _rankings(topics: Callable[[Source], Iterator[Topic]], source: Source) -> Iterator[bytes]:
    """Scores count down, as trec_eval orders by them alone, and those of several searches can't be compared."""
    for topic, _, found in topics(source):
        ids = dict.fromkeys(field(each.id) for each in found)
        for rank, identifier in enumerate(ids, start=1):
            yield f"{topic} Q0 {identifier} {rank} {len(ids) + 1 - rank} {field(source.record.id)}\n".encode()


def _judgements(topics: Callable[[Source], Iterator[Topic]], source: Source) -> Iterator[bytes]:
    fold = _fold(source.record)
    for topic, question, _ in topics(source):
        yield from _judged(topic, question, fold)


def _judged(topic: str, question: TracedQuestion, fold: Fold) -> Iterator[bytes]:
    """The gold paragraphs by their ids in the corpus: as one was found, else as the dataset has it.

    One of which neither is known stays, by its digest, as it counts in the recall.
    """
    found: dict[Key, str] = {}
    hits = (hit.paragraph for step in question.steps for hit in step.hits)
    for paragraph in chain(_collected(question, fold), hits):
        for key in paragraph_keys(paragraph, fold):
            found.setdefault(key, paragraph.id)
    grades: dict[str, int] = {}
    for gold in counted(question.gold, question.pinned):
        unknown = f"unknown-{passage_of(gold.text, gold.title).digest}"
        grades.setdefault(field(found.get(gold_key(gold, fold)) or gold.id or unknown), gold.grade)
    for identifier, grade in grades.items():
        yield f"{topic} 0 {identifier} {grade}\n".encode()


def _collected(question: TracedQuestion, fold: Fold) -> Iterator[Paragraph]:
    """What the recall counts: the passage that the question is about takes no rank."""
    pinned = question.pinned and content_of(question.pinned, fold)
    return (each for each in question.paragraphs if pinned is None or content_of(each, fold) != pinned)


def _fold(record: RunRecord) -> Fold:
    is_known = record.dataset in DATASETS
    return fold_of(scoring_of(record.dataset) if is_known else Scoring("squad", any_script=True))


# The formats.

FormatName = Literal["jsonl", "hotpotqa", "musique", "trec", "trec-steps", "qrels", "qrels-steps", "chat", "inspect"]


class Format(Struct, frozen=True, kw_only=True):
    """A format; pieces: makes a file, question by question.

    media_type: of the file; binary: whether it is no text.
    nothing: what a run lacks that gives no piece; empty where that is a file too.
    """

    pieces: Callable[[Source], Iterator[bytes]]
    media_type: str = "application/jsonl"
    binary: bool = False
    nothing: str = ""


_FOUND_NOTHING = "has found no paragraphs, of which a ranking is made"
_NO_GOLD = "has no questions with gold paragraphs, which its dataset would have to publish"

FORMATS: Mapping[FormatName, Format] = {
    "jsonl": Format(pieces=rows),
    "hotpotqa": Format(pieces=_hotpotqa),
    "musique": Format(pieces=_musique),
    "trec": Format(pieces=partial(_rankings, _by_question), media_type="text/plain", nothing=_FOUND_NOTHING),
    "trec-steps": Format(pieces=partial(_rankings, _by_search), media_type="text/plain", nothing=_FOUND_NOTHING),
    "qrels": Format(pieces=partial(_judgements, _by_question), media_type="text/plain", nothing=_NO_GOLD),
    "qrels-steps": Format(pieces=partial(_judgements, _by_search), media_type="text/plain", nothing=_NO_GOLD),
    "chat": Format(pieces=chat_lines),
    "inspect": Format(pieces=inspect_log, media_type="application/zip", binary=True),
}


def lines(source: Source, form: FormatName) -> Iterator[bytes]:
    """The pieces of a run's file, which are lines unless it is binary; raises InputError where there are none."""
    written = False
    for piece in FORMATS[form].pieces(source):
        written = True
        yield piece
    if not written and FORMATS[form].nothing:
        raise InputError(f"run {source.record.id} {FORMATS[form].nothing}; choose another format")


@operation(
    "exports.answers",
    "GET",
    "/runs/{run}/export",
    Scope.READ,
    answers="stream",
    media_type=MediaTypes(parameter="form", types={name: each.media_type for name, each in FORMATS.items()}),
)
def export_answers(run: str, form: FormatName = "jsonl", reward: str = REWARD) -> Iterator[bytes]:
    """Give a run's answers, and the chains and paragraphs behind them, as lines of a file in that form.

    form: `jsonl` has everything recorded of each question, one JSON object a line; `hotpotqa` and `musique` are what
    those datasets' official evaluation scripts read; `trec` and `qrels` are rankings and judgements for trec_eval, and
    `trec-steps` and `qrels-steps` the same with each search as a topic; `chat` is what a model was shown and wrote,
    for training; `inspect` is a log of Inspect (`.eval`).
    reward: the metric that rewards an answer, in `chat`.
    """
    with reading() as connection:
        record = find_run(connection, run)
        questions, verdicts = read_questions(connection, record.id), verdicts_by_question(connection, record)
        yield from lines(Source(record=record, questions=questions, verdicts=verdicts, reward=reward), form)
