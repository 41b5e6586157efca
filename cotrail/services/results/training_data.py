"""What models are trained on: what they were shown and what they wrote, as chats with a reward, and pairs of these."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.prompts import Prompt, Turn
from cotrail.core.results import Generated
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.results.exporting import Source, json_line
from cotrail.services.runs.scores import scorer_of, without_scores

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
        self.messages.append(written_message(result))
        self.mask.append(int(by_model))
        self.steps.append(sequence)
        self.shown = [*map(_key, prompt_messages(prompt.wrote(result.text, result.calls)))]
        self.stop = result.stop


def chat_lines(source: Source) -> Iterator[bytes]:
    """The conversations of each question, in the order in which they began."""
    reward_of = _rewards(source)
    for question in source.questions:
        reward = reward_of(question)
        for chat in conversations(question):
            yield json_line(
                {
                    "id": f"{question.key}.{chat.steps[-1]}",
                    "run": source.record.id,
                    "question_id": question.key,
                    "dataset": source.record.dataset,
                    "answers": question.answers,
                    "steps": chat.steps,
                    "messages": chat.messages,
                    "mask": chat.mask,
                    "tools": chat.tools,
                    "reward": reward,
                    "ended_by": question.ended_by,
                }
            )


def preference_lines(source: Source) -> Iterator[bytes]:
    """Pairs of conversations of two runs that begin alike and whose questions got different rewards, the better first.

    Such as of a run and its fork, or of two runs with other seeds. Raises InputError where no other run is named.
    """
    if source.rival is None:
        raise InputError("preferences are pairs of two runs' texts; name the other run with --against")
    ours, theirs, records = _rewards(source), _rewards(source.rival.source), (source.record, source.rival.source.record)
    for question in source.questions:
        other = source.rival.find(question.key)
        scores = (None, None) if other is None else (ours(question), theirs(other))
        if other is None or scores[0] is None or scores[1] is None or scores[0] == scores[1]:
            continue
        sides = zip(scores, [record.id for record in records], (question, other), strict=True)
        (chosen, better, one), (rejected, worse, two) = sorted(sides, key=lambda side: -(side[0] or 0))
        for number, pair in enumerate(_pairs(conversations(one), conversations(two))):
            yield json_line(
                {
                    "id": f"{question.key}.{number}",
                    "question_id": question.key,
                    "runs": (better, worse),
                    **pair,
                    "score_chosen": chosen,
                    "score_rejected": rejected,
                }
            )


def _pairs(chosen: list[Chat], rejected: list[Chat]) -> Iterator[dict[str, Any]]:
    """Each conversation with the first other one that has the same messages up to a text that differs."""
    others = list(rejected)
    for chat in chosen:
        for other in others:
            start = _common(chat.messages, other.messages)
            ends = chat.messages[start:], other.messages[start:]
            if start and chat.tools == other.tools and all(end and end[0]["role"] == "assistant" for end in ends):
                others.remove(other)
                yield {"prompt": chat.messages[:start], "chosen": ends[0], "rejected": ends[1], "tools": chat.tools}
                break


def _common(one: list[Message], two: list[Message]) -> int:
    """How many messages both begin with."""
    return next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _rewards(source: Source) -> Callable[[TracedQuestion], float | None]:
    """What rewards the answer to a question: a metric, or the score of a judge's verdict."""
    name = source.reward
    if name in METRICS:
        score = scorer_of(source.record) or without_scores
        return lambda question: score(question)[name]
    judges = dict.fromkeys(verdict.judge for each in source.verdicts.values() for verdict in each)
    if name not in judges:
        known = ", ".join((*METRICS, *judges))
        raise InputError(f"run {source.record.id} has neither a metric nor a judge {name!r}; reward by one of {known}")
    return lambda question: next(
        (
            verdict.judgement.score
            for verdict in source.verdicts.get(question.key, ())
            if verdict.judge == name and verdict.judgement
        ),
        None,
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
    messages = prompt_messages(prompt)
    keys = [*map(_key, messages)]
    for chat in reversed(begun):
        if (inserted := chat.inserted(keys)) is not None:
            chat.go_on(inserted, messages)
            return chat
    chat = Chat(tools=prompt.functions)
    chat.show(messages)
    begun.append(chat)
    return chat


def written_message(result: Generated) -> Message:
    """What a model wrote, with the stop string that ended it, which it wrote too."""
    message = Turn(role="assistant", calls=result.calls).message | {"content": result.text + result.stop}
    return message | ({"reasoning_content": result.thoughts} if result.thoughts_are == "whole" else {})


def prompt_messages(prompt: Prompt) -> list[Message]:
    """A prompt's turns; plain text, which no one speaks, is the user's."""
    messages = [{**message, "role": message["role"] or "user"} for message in prompt.messages]
    return [{name: value for name, value in message.items() if name != "carried"} for message in messages]


def _key(message: Message) -> ComparedTurn:
    return message["role"], message["content"], [call["function"] for call in message.get("tool_calls", ())]
