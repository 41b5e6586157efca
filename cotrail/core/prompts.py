"""Prompts: turns of a conversation, made of pieces; a prompt of plain text is a single turn without a role."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, count, takewhile
from operator import attrgetter
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.structs import canonical
from cotrail.core.calls import Call, Tool, given_ids_alone
from cotrail.core.demonstrations import Demonstrations, Drop, Layout, fill, fill_paragraph
from cotrail.core.generation import Cut, HandsBack
from cotrail.core.questions import Paragraph

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

Role = Literal["", "system", "user", "assistant", "tool"]
"""Who speaks in a turn; empty for plain text, which no one speaks."""


# Without `gc`, since these hold nothing that could refer to them, and many are made a step.


class Text(Struct, frozen=True, gc=False, tag=True):
    """Words of the system's own.

    yields: 0 for what is never left out. Where not all of a prompt fits, pieces with the highest number go first, and
        of equal ones the later ones.
    tokens: cut to this many tokens of the model's, together with the adjacent pieces that have the same number.
    """

    text: str
    yields: int = 0
    tokens: int | None = None


class Asked(Struct, frozen=True, gc=False, tag=True):
    """The question that the prompt asks; form: how it is shown, with `{question}` in its place."""

    question: str
    form: str = "{question}"

    @property
    def text(self) -> str:
        """The piece as it is shown."""
        return fill(self.form, "question", self.question)


class Written(Struct, frozen=True, gc=False, tag=True):
    """What the model wrote before; yields: as of `Text`."""

    text: str
    yields: int = 0


class Shown(Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """A paragraph.

    form: how it is shown, with `{title}` and behind that `{text}` in their places.
    words: cut to this many space-separated words, and stripped; None for the text as it is.
    yields, tokens: as of `Text`.
    """

    paragraph: Paragraph
    form: str = "{title}\n{text}"
    words: int | None = None
    yields: int = 1
    tokens: int | None = None

    @property
    def text(self) -> str:
        paragraph = self.paragraph
        return fill_paragraph(self.form, paragraph.title, paragraph.text if self.words is None else self._cut())

    def _cut(self) -> str:
        text, words = self.paragraph.text, self.words or 0
        return (" ".join(text.split(" ")[:words]) if text.count(" ") >= words else text).strip()


class Demonstrated(Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """Demonstrations; a prompt has one such piece at most. Where not all of it fits, they go before anything else.

    drop: which of them go. first: where the first of these stood before others were left out, from 0; it shows nowhere
        in the text.
    """

    demonstrations: Demonstrations
    layout: Layout = "ircot"
    drop: Drop = "last"
    first: int = 0

    @property
    def text(self) -> str:
        return self.demonstrations.laid_out(self.layout)

    def keep(self, number: int, first: int) -> "Demonstrated":
        """The same piece with its demonstrations from number `first` on, this many."""
        kept = self.demonstrations.items[first : first + number]
        return replace(self, demonstrations=Demonstrations(items=kept), first=self.first + first if kept else 0)


Piece = Text | Asked | Written | Shown | Demonstrated
PieceT = TypeVar("PieceT", Text, Asked, Written, Shown, Demonstrated)


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One turn of a conversation.

    calls: the tools that the model called in it; answers: in a tool's turn, the id of the call that it answers.
    lower: whether its text is in small letters, as UnifiedQA was trained on.
    carried: what the model's own message had in addition to its text, see `Generated`.
    """

    role: Role
    pieces: tuple[Piece, ...] = ()
    calls: tuple[Call, ...] = ()
    answers: str = ""
    lower: bool = False
    carried: str = ""

    @property
    def text(self) -> str:
        """Its pieces' text."""
        text = "".join(piece.text for piece in self.pieces)
        return text.lower() if self.lower else text

    @property
    def message(self) -> dict[str, Any]:
        """The turn as a message of a chat."""
        message: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        if self.carried:
            message["carried"] = self.carried
        return message | ({"tool_call_id": self.answers} if self.answers else {})


class Prompt(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a model is shown for one step: one turn of plain text, or turns with roles.

    The model continues a last turn that is plain or the assistant's; after any other one it opens its own.

    window: only the last so many tokens of its pieces are shown, where it has more; None for all.
    cuts: what was cut of it to such limits, which engines do, since they count tokens; see `cut`.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    window: int | None = None
    cuts: tuple[Cut, ...] = ()

    def __post_init__(self) -> None:
        if not self.turns or (self.has_roles and not all(turn.role for turn in self.turns)):
            raise ValueError("a prompt is one turn without a role, or turns that all have one")
        if list(map(type, self.pieces)).count(Demonstrated) > 1:
            raise ValueError("a prompt has its demonstrations in one place")

    @property
    def has_roles(self) -> bool:
        """Return whether it is a conversation, which a chat template or a chat server lays out."""
        return len(self.turns) > 1 or bool(self.turns[0].role or self.tools)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces in their order."""
        return self.turns[0].pieces if len(self.turns) == 1 else tuple(chain(*(turn.pieces for turn in self.turns)))

    @property
    def continues_last_turn(self) -> bool:
        """Return whether the model continues the last turn in place."""
        return self.turns[-1].role in ("", "assistant")

    @property
    def question(self) -> str:
        """The question that it asks, the last one if there are several; empty if there is none."""
        questions = self._of(Asked)
        return questions[-1].question if questions else ""

    @property
    def written(self) -> tuple[str, ...]:
        """What the model wrote before in the turn that it continues, stripped."""
        return tuple(piece.text.strip() for piece in self.turns[-1].pieces if isinstance(piece, Written))

    @property
    def texts_written(self) -> list[str]:
        """What the model wrote before in any turn, as it stands there and stripped."""
        texts = [piece.text for piece in self._of(Written)]
        return list(dict.fromkeys(each for text in texts for each in (text, text.strip())))

    @cached_property
    def demonstrated(self) -> Demonstrated | None:
        """The piece with the demonstrations."""
        return next(iter(self._of(Demonstrated)), None)

    @property
    def demonstrations(self) -> Demonstrations:
        """The demonstrations, maybe none."""
        return self.demonstrated.demonstrations if self.demonstrated else Demonstrations()

    @property
    def first_demonstration(self) -> int:
        """Where the first of the demonstrations stood before `keep` left out others, from 0."""
        return self.demonstrated.first if self.demonstrated else 0

    @property
    def drop(self) -> Drop:
        """Which demonstrations go where not all fit."""
        return self.demonstrated.drop if self.demonstrated else "last"

    @property
    def yielding(self) -> tuple[Text | Written | Shown, ...]:
        """The pieces that may be left out, those that stay longest first."""
        return tuple(self._piece(place) for place in self._yielding)

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The paragraphs; where not all fit, those that stay longest first."""
        return tuple(piece.paragraph for piece in sorted(self._of(Shown), key=_yields))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The turns as messages of a chat."""
        return [turn.message for turn in self.turns]

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The tools as a chat server takes them; `parameters` is JSON, which raises ValueError if it isn't."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": msgspec.json.decode(tool.parameters),
                },
            }
            for tool in self.tools
        ]

    @property
    def shared(self) -> str:
        """The text before the question and the paragraphs, which the prompts of a run share (prefix cache)."""
        begins = takewhile(lambda piece: isinstance(piece, Demonstrated | Text), self.pieces)
        return "".join(piece.text for piece in begins)

    def render(self) -> str:
        """The text that the model is shown; of a conversation its messages and tools as JSON.

        A chat template or a chat server makes text of these, which is why templates belong to a model's identity.
        """
        return canonical(self._conversation).decode() if self.has_roles else self.turns[0].text

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what `render` returns."""
        if self.has_roles:
            return hashlib.sha256(canonical(self._conversation)).hexdigest()
        turn, first = self.turns[0], self.demonstrated
        if first is None or turn.pieces[0] is not first or turn.lower:
            return hashlib.sha256(turn.text.encode()).hexdigest()
        # The long common part of a run's prompts is hashed once.
        hashed = first.demonstrations.hash(first.layout)
        hashed.update("".join(piece.text for piece in turn.pieces[1:]).encode())
        return hashed.hexdigest()

    def add(self, *turns: Turn) -> "Prompt":
        """The same conversation with further turns."""
        return replace(self, turns=(*self.turns, *turns))

    def append(self, *pieces: str | Piece) -> "Prompt":
        """The same prompt with further pieces at the end of its last turn."""
        *before, last = self.turns
        return replace(self, turns=(*before, replace(last, pieces=(*last.pieces, *_pieces(pieces)))))

    def wrote(self, text: str, calls: tuple[Call, ...] = (), carried: str = "") -> "Prompt":
        """The same prompt with what the model wrote to it: in the turn that it continued, else in its own.

        carried: see `Generated`; the engine hands it back as its table says (`hands_back`).
        """
        if not self.continues_last_turn:
            return self.add(replace(assistant(Written(text), calls=calls), carried=carried))
        *before, last = self.turns
        continued = replace(last, pieces=(*last.pieces, Written(text)), calls=calls, carried=carried)
        return replace(self, turns=(*before, continued))

    def handing_back(self, which: HandsBack) -> "Prompt":
        """The same prompt with only those of the carried fields that are handed back, and the ids of calls."""
        if which == "all" or not any(turn.carried for turn in self.turns):
            return self
        roles = [turn.role for turn in self.turns]
        since = len(roles) - roles[::-1].index("user") if which == "calls" and "user" in roles else 0
        kept = since if which == "calls" else len(roles)
        turns = (
            replace(turn, carried=given_ids_alone(turn.carried)) if number < kept else turn
            for number, turn in enumerate(self.turns)
        )
        return replace(self, turns=tuple(turns))

    def without_written(self) -> "Prompt":
        """The same prompt without what the model wrote before."""
        turns = (
            replace(turn, pieces=tuple(piece for piece in turn.pieces if not isinstance(piece, Written)))
            for turn in self.turns
        )
        return replace(self, turns=tuple(turns))

    def keep(self, demonstrations: int, pieces: int, first: int = 0) -> "Prompt":
        """The same prompt with its demonstrations from number `first` on, this many, and that many of `yielding`.

        A turn that is left with nothing is left out too, except calls of tools and the answers that they need.
        """
        gone = set(self._yielding[pieces:])
        shown = self.demonstrated
        kept = None if shown is None else shown.keep(demonstrations, first)
        if not gone and (kept is None or kept == shown):
            return self
        turns = []
        for number, turn in enumerate(self.turns):
            left = tuple(
                kept if kept is not None and piece is shown else piece
                for place, piece in enumerate(turn.pieces)
                if (number, place) not in gone
            )
            if left or turn.calls or turn.answers or not turn.pieces or not self.has_roles:
                turns.append(turn if left == turn.pieces else replace(turn, pieces=left))
        return replace(self, turns=tuple(turns))

    def cut(self, cuts: tuple[Cut, ...]) -> "Prompt":
        """The same prompt with these pieces cut; what is left of one yields, and is quoted, as before."""
        if not cuts:
            return self
        by_place, places = {each.place: each for each in cuts}, count()
        turns = tuple(
            replace(turn, pieces=tuple(_cut(piece, by_place.get(next(places))) for piece in turn.pieces))
            for turn in self.turns
        )
        return replace(self, turns=turns, cuts=cuts)

    def _of(self, kind: type[PieceT]) -> list[PieceT]:
        return [piece for piece in self.pieces if type(piece) is kind]

    @property
    def _conversation(self) -> dict[str, Any]:
        return {"messages": self.messages} | ({"tools": self.functions} if self.tools else {})

    @cached_property
    def _yielding(self) -> list[tuple[int, int]]:
        """Places, as turn and piece, of the pieces that may be left out, those that stay longest first."""
        places = [
            (number, place)
            for number, turn in enumerate(self.turns)
            for place, piece in enumerate(turn.pieces)
            if isinstance(piece, Text | Written | Shown) and piece.yields
        ]
        return sorted(places, key=lambda place: _yields(self._piece(place)))

    def _piece(self, place: tuple[int, int]) -> Any:
        turn, piece = place
        return self.turns[turn].pieces[piece]


_yields = attrgetter("yields")


def _cut(piece: Piece, cut: Cut | None) -> Piece:
    if cut is None:
        return piece
    text = piece.text[cut.start : cut.end]
    if isinstance(piece, Text | Written):
        return replace(piece, text=text)
    return Shown(paragraph=Paragraph(id="", title="", text=text), form="{text}", yields=getattr(piece, "yields", 0))


def plain(*pieces: str | Piece) -> Turn:
    """The only turn of a prompt without roles."""
    return Turn(role="", pieces=_pieces(pieces))


def system(*pieces: str | Piece) -> Turn:
    """The turn that says what the conversation is about."""
    return Turn(role="system", pieces=_pieces(pieces))


def user(*pieces: str | Piece) -> Turn:
    """A turn in which the model is asked."""
    return Turn(role="user", pieces=_pieces(pieces))


def assistant(*pieces: str | Piece, calls: tuple[Call, ...] = ()) -> Turn:
    """A turn of the model's."""
    return Turn(role="assistant", pieces=_pieces(pieces), calls=calls)


def tool(answers: str, *pieces: str | Piece) -> Turn:
    """A tool's answer to the call of that id."""
    return Turn(role="tool", pieces=_pieces(pieces), answers=answers)


def _pieces(given: Sequence[str | Piece]) -> tuple[Piece, ...]:
    return tuple(Text(each) if isinstance(each, str) else each for each in given)


def quoted_spans(turns: Sequence[Turn], find: Callable[[str], Iterable[Span]]) -> Iterator[list[Span]]:
    """Where each turn's text has what is looked for, such as a control token, and only quotes it.

    A system's own words may say it themselves (`Text`, but not in a tool's answer), and so may what the model wrote
    (`Written`), unless it may have copied it: from what is quoted before. find: where a text has what is looked for.
    """
    quoted: set[str] = set()
    for turn in turns:
        text, spans = turn.text, list[Span]()
        for start, end in find(text):
            kinds = _kinds(turn, start, end)
            if not kinds <= _OWN or (Written in kinds and text[start:end] in quoted):
                quoted.add(text[start:end])
                spans.append((start, end))
        yield spans


_OWN = frozenset({Text, Written})


def _kinds(turn: Turn, start: int, end: int) -> set[type]:
    """The kinds of the pieces that a part of a turn's text is from."""
    # In small letters a text may have another length.
    if turn.role == "tool" or turn.lower:
        return {Turn}
    kinds, place = set[type](), 0
    for piece in turn.pieces:
        begin, place = place, place + len(piece.text)
        if begin < end and start < place:
            kinds.add(type(piece))
    return kinds
