"""Prompts as JSON: their pieces, of which the long ones are stored once and stand there by their digests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from cotrail.common.structs import unusual
from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Drop, Layout, Stored
from cotrail.core.prompts import Asked, Demonstrated, Piece, Prompt, Role, Shown, Text, Turn, Written
from cotrail.core.questions import Paragraph, passage_of
from cotrail.core.results import Json

LONGEST_INLINE = 200
"""Characters of a text that the record itself has; a longer one is stored once, however often it is shown."""

Inline = str | int
"""A text, or its place among the record's `texts`."""


class _Record(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="is"):
    """A piece as it is written down."""


class _Text(_Record, frozen=True, tag="text"):
    text: Inline
    yields: int = 0
    tokens: int | None = None


class _Asked(_Record, frozen=True, tag="asked"):
    question: Inline
    form: str = "{question}"


class _Written(_Record, frozen=True, tag="written"):
    text: Inline
    yields: int = 0


class _Shown(_Record, frozen=True, tag="shown"):
    """The next so many of the record's `paragraphs`, all in the same form."""

    count: int
    form: str = "{title}\n{text}"
    words: int | None = None
    yields: int = 1
    tokens: int | None = None


class _Demonstrated(_Record, frozen=True, tag="demonstrated"):
    """The demonstrations whose digest is the record's `demonstrations`."""

    layout: Layout = "ircot"
    drop: Drop = "last"


PieceRecord = _Text | _Asked | _Written | _Shown | _Demonstrated


class _Turn(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    role: Role = ""
    pieces: tuple[PieceRecord, ...] = ()
    calls: tuple[Call, ...] = ()
    answers: str = ""
    lower: bool = False
    carried: Inline = ""


class PromptRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt as it is written down; a kind of action with further fields derives its own record from it.

    turns: their pieces. demonstrations, paragraphs, texts: the digests of what they refer to, paragraphs in the order
        in which they are shown; a text is stored as a paragraph without a title.
    written: how many texts of the model's the last turn has, which is the position of a chain's next sentence.
    """

    turns: tuple[_Turn, ...]
    demonstrations: str | None = None
    paragraphs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    written: int = 0
    tools: tuple[Tool, ...] = ()
    window: int | None = None

    def prompt(self, stored: Stored) -> Prompt:
        """The prompt that was written down; raises what `Stored` does, and ValueError where the record isn't whole."""
        paragraphs = iter(stored.referred(self.paragraphs))
        texts = [each.text for each in stored.referred(self.texts)]
        turns = (
            Turn(
                **asdict(turn)
                | {
                    "pieces": tuple(
                        piece for record in turn.pieces for piece in self._pieces(record, paragraphs, texts, stored)
                    ),
                    "carried": _read(turn.carried, texts),
                }
            )
            for turn in self.turns
        )
        try:
            return Prompt(turns=tuple(turns), tools=self.tools, window=self.window)
        except IndexError:
            raise ValueError("it refers to a text that it doesn't have") from None

    def _pieces(
        self, record: PieceRecord, paragraphs: Iterator[Paragraph], texts: Sequence[str], stored: Stored
    ) -> Iterator[Piece]:
        match record:
            case _Shown():
                fields = asdict(record)
                for paragraph in islice(paragraphs, fields.pop("count")):
                    yield Shown(paragraph=paragraph, **fields)
            case _Asked():
                yield Asked(_read(record.question, texts), record.form)
            case _Written():
                yield Written(_read(record.text, texts), record.yields)
            case _Text():
                yield Text(_read(record.text, texts), record.yields, record.tokens)
            case _Demonstrated():
                shots = stored.demonstrations(self.demonstrations or "")
                yield Demonstrated(demonstrations=shots, layout=record.layout, drop=record.drop)


def record_prompt(prompt: Prompt) -> Json:
    """The JSON of a prompt, with the digests of its long parts; see `PromptRecord`."""
    long = long_texts(prompt)
    places = {paragraph.text: place for place, paragraph in enumerate(long)}
    shown = prompt.demonstrated
    record: Json = {"turns": [_turn(turn, places) for turn in prompt.turns]}
    if shown is not None:
        record["demonstrations"] = shown.demonstrations.digest
    if paragraphs := [piece.paragraph.digest for piece in prompt.pieces if type(piece) is Shown]:
        record["paragraphs"] = paragraphs
    if long:
        record["texts"] = [paragraph.digest for paragraph in long]
    if sentences := len(prompt.written):
        record["written"] = sentences
    if prompt.tools:
        record["tools"] = msgspec.to_builtins(prompt.tools)
    return record | unusual(prompt, "window")


def long_texts(prompt: Prompt) -> tuple[Paragraph, ...]:
    """The texts that `record_prompt` refers to, as paragraphs without a title."""
    texts = dict[str, None]()
    for piece in prompt.pieces:
        if type(piece) is not Shown and type(piece) is not Demonstrated:
            text = piece.question if type(piece) is Asked else piece.text
            if len(text) > LONGEST_INLINE:
                texts[text] = None
    for turn in prompt.turns:
        if len(turn.carried) > LONGEST_INLINE:
            texts[turn.carried] = None
    return tuple(map(passage_of, texts))


def chain_length(request: Mapping[str, Any]) -> int:
    """How many sentences the chain had that a recorded request continues."""
    return len(request["sentences"]) if "sentences" in request else int(request.get("written", 0))


def _turn(turn: Turn, places: Mapping[str, int]) -> Json:
    record: Json = {"role": turn.role} if turn.role else {}
    record["pieces"] = _pieces(turn.pieces, places)
    if turn.calls:
        record["calls"] = msgspec.to_builtins(turn.calls)
    if turn.answers:
        record["answers"] = turn.answers
    if turn.lower:
        record["lower"] = True
    if turn.carried:
        record["carried"] = places.get(turn.carried, turn.carried)
    return record


def _pieces(pieces: Iterable[Piece], places: Mapping[str, int]) -> list[Json]:
    """Each piece as JSON, and adjacent paragraphs of the same form as one."""
    records: list[Json] = []
    last: Shown | None = None
    for piece in pieces:
        if type(piece) is not Shown:
            last = None
            records.append(_piece(piece, places))
        elif last is not None and _alike(piece, last):
            records[-1]["count"] += 1
        else:
            last = piece
            records.append({"is": "shown", "count": 1, **unusual(piece, "form", "words", "yields", "tokens")})
    return records


def _alike(one: Shown, other: Shown) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("form", "words", "yields", "tokens"))


def _piece(piece: Piece, places: Mapping[str, int]) -> Json:
    match piece:
        case Text():
            return {"is": "text", "text": places.get(piece.text, piece.text), **unusual(piece, "yields", "tokens")}
        case Written():
            return {"is": "written", "text": places.get(piece.text, piece.text), **unusual(piece, "yields")}
        case Asked():
            question = places.get(piece.question, piece.question)
            return {"is": "asked", "question": question, **unusual(piece, "form")}
        case Demonstrated():
            return {"is": "demonstrated", **unusual(piece, "layout", "drop")}
    raise TypeError(f"{piece!r:.200} isn't written down one by one")


def _read(text: Inline, texts: Sequence[str]) -> str:
    return text if isinstance(text, str) else texts[text]
