"""Transcripts from elsewhere as runs (`cotrail import`): a system that asks for what a transcript says was asked.

Nothing is carried out: `cotrail.services.runs.importing` records what the transcript says as the results.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.actions.generate import Read
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.calls import Call
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Prompt, Role, Text, Turn
from cotrail.core.questions import Hit, Paragraph, Question
from cotrail.core.results import Generated, Retrieved
from cotrail.core.system import Action, Answer, System, expect
from cotrail.errors import InputError
from cotrail.systems.spec import Needs, SystemSpec, always, unbounded

LONGEST = 1_000_000
"""The most tokens of a text, as no transcript says what was allowed."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a transcript.

    calls: of the assistant's; answers: the id of the call that a tool's message answers.
    query: what a tool searched for, None for other tools; found: the paragraphs that it showed then.
    """

    role: Role
    content: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    query: str | None = None
    found: tuple[Paragraph, ...] = ()


class Transcript(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said about a question, of which the first message isn't the assistant's; answer: None where none was."""

    messages: tuple[Message, ...]
    answer: str | None = None

    def steps(self) -> Iterator[Message]:
        """Yield those that were steps: texts of the model, and searches."""
        yield from (each for each in self.messages if each.role == "assistant" or each.query is not None)


class NoSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transcript says all."""


def imported(question: Question, shots: Shots, settings: NoSettings) -> System:  # noqa: ARG001 - the same for all systems
    """Ask for each text and each search of the transcript in their order, and end with its answer."""
    transcript = msgspec.json.decode(str(question.evidence[0]), type=Transcript)
    chat, found = Prompt(turns=(_turn(transcript.messages[0]),)), dict[str, Paragraph]()
    for message in transcript.messages[1:]:
        if message.role == "assistant":
            written = expect((yield Read(prompt=chat, max_tokens=LONGEST, until="end")), Generated)
            chat = chat.wrote(written.text, written.calls)
            continue
        if message.query is not None:
            searching = Retrieve(query=message.query, count=len(message.found) or 1)
            searched = expect((yield searching), Retrieved)
            found |= {each.digest: each for each in searched.paragraphs}
        chat = chat.add(_turn(message))
    return Answer(text=transcript.answer or "", paragraphs=tuple(found.values()))


def _turn(message: Message) -> Turn:
    return Turn(role=message.role, pieces=(Text(message.content),), answers=message.answers)


def result_of(message: Message, action: Action) -> Generated | Retrieved:
    """The result of the step for which a message stands."""
    if isinstance(action, Retrieve):
        hits = (Hit(paragraph=each, rank=rank, score=0.0) for rank, each in enumerate(message.found, start=1))
        return Retrieved(hits=tuple(hits))
    return Generated(
        text=message.content,
        raw=message.content,
        demonstrations=0,
        paragraphs=0,
        prompt_digest=action.prompt.digest if isinstance(action, Read) else "",
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
        calls=message.calls,
    )


def _refused(_: Any) -> Any:
    raise InputError("the system imported has the runs that `cotrail import` makes of transcripts; submit another one")


SPEC = SystemSpec(
    name="imported",
    version=1,
    title="Imported",
    meaning="Asks for what a transcript from elsewhere says was asked.",
    settings=NoSettings,
    open=imported,
    needs=always(Needs()),
    step_bounds=unbounded,
    spelled_out=_refused,
)
