"""Untrusted text made safe: for PostgreSQL, for terminals and web pages, and for algorithms over combining marks."""

import re
import unicodedata

# Bounded runs of combining marks: Unicode normalization takes time quadratic in their number.

MOST_MARKS = 30
"""The most marks in a row, as in Unicode's stream-safe text format (UAX #15); no language has ten."""

_RUN = re.compile(rf"[^\s\x00-\u02ff]{{{MOST_MARKS + 1},}}")
_VOICED = "\uff9e\uff9f"
"""Letters of half width that normalization turns into marks."""


def few_marks(text: str) -> str:
    """The text without those combining marks that stand behind `MOST_MARKS` others."""
    return text if text.isascii() else _RUN.sub(lambda run: _shortened(run[0]), text)


def _shortened(run: str) -> str:
    kept, marks = [], 0
    for character in run:
        is_mark = unicodedata.category(character).startswith("M") or character in _VOICED
        marks = marks + 1 if is_mark else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_WRITTEN_NUL = re.compile(r"(?<!\\)((?:\\\\)*\\u)0000")
_UNSTORABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\0\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace the characters that PostgreSQL can't store, NUL and lone surrogates, by U+FFFD; pairs are joined."""
    return _UNSTORABLE.sub(_stored, value)


def storable_json(written: str) -> str:
    """JSON whose texts can be stored once they are decoded: NUL, which is written as an escape, becomes U+FFFD."""
    return _WRITTEN_NUL.sub(r"\1fffd", written)


def holds_nul(content: bytes) -> bool:
    """Return whether a text of this JSON has a NUL character."""
    # The substring test comes first because it is much faster than the regular expression, and nearly always false.
    return b"\\u0000" in content and _NUL.search(content) is not None


def _stored(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16") if len(match[0]) > 1 else "\ufffd"


class StorablePieces:
    """Makes a text storable that comes piece by piece, where a character may have its two surrogates in two pieces."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """What of the next piece, and of the one before, is known to be storable."""
        read = self._half + piece
        self._half = read[-1:] if "\ud800" <= read[-1:] <= "\udbff" else ""
        return storable(read.removesuffix(self._half))


# Untrusted text made safe for terminals and web pages.
#
# Questions, paragraphs, model output, names and errors may hold escape sequences, which can clear a screen or write the
# clipboard, and Unicode direction marks, which reorder the text around them. Only output is changed; stored text isn't.

UNPRINTABLE = "\ufffd"
"""Replacement for removed characters, so that a reader sees that there was something."""

_SEQUENCE = r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
"""Sequences that begin with CSI: colours, cursor movements, erasing."""

_STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*+(?:\x07|\x1b\\|\x9c)"
"""Strings that begin with DCS, SOS, OSC, PM or APC, up to their terminator: titles, links, the clipboard."""

_ESCAPE = r"\x1b[ -/]*+[0-~]?"
"""Any other sequence, or one without an end."""

_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
"""C0 except tab and newline, DEL, C1, Unicode's line separators (which end isolates), and lone surrogates."""

COMMANDS = re.compile(f"(?:{_SEQUENCE}|{_STRING}|{_ESCAPE}|{_CONTROL})++")
"""Everything that a terminal would interpret as a command or can't display."""

_BREAKS = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
"""Everything that some program takes for the end of a line."""

_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u206f]")
"""Characters that open or close an embedding, override or isolate of the writing direction."""

_LEFTWARDS = "\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
"""Characters of right-to-left scripts, and the right-to-left mark."""

_PASSAGE = re.compile(rf"[{_LEFTWARDS}](?:(?>[^\w\n]|[\d_{_LEFTWARDS}])*[{_LEFTWARDS}])?")
"""A right-to-left passage within one line, with the spaces, digits and punctuation inside it."""

_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
"""Characters that JSON doesn't escape, though a terminal or page would interpret them."""

_UNSEEN = frozenset("CZ")
"""Major categories of Unicode whose characters leave nothing to be seen: controls, formats, separators."""


def printable(text: str) -> str:
    """Remove everything that a terminal or a browser would interpret; lines and tabs stay."""
    return isolated(without_commands(text))


def without_commands(text: str) -> str:
    """Replace control characters and escape sequences."""
    return COMMANDS.sub(UNPRINTABLE, text.replace("\r\n", "\n"))


def isolated(text: str) -> str:
    """Enclose each right-to-left passage in an isolate, so that the text around it isn't reordered."""
    return _PASSAGE.sub("\u2068\\g<0>\u2069", _DIRECTIONS.sub("", text))


def first_difference(first: str, second: str, characters: int) -> str:
    """Where two texts part, as `' Who' and 'Who' from character 1 on`: blanks and the like are seen too."""
    pairs = enumerate(zip(first, second, strict=False))
    at = next((number for number, (one, other) in pairs if one != other), min(len(first), len(second)))
    rest = " and ".join(repr(each[at : at + characters]) for each in (first, second))
    return f"{rest} from character {at + 1:,} on"


def cut(text: str, characters: int) -> str:
    """The text on one line, with an ellipsis where it is longer; cut between words where there are any."""
    line = " ".join(without_commands(text).split())
    if len(line) <= characters:
        return line
    head = line[: characters - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[characters // 2 :] else head) + "…"


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen, as of zero-width spaces."""
    return all(unicodedata.category(each)[0] in _UNSEEN for each in text)


def visible(text: str) -> str:
    """The text, or `(blank)` where nothing of it can be seen: for what a heading or a link is named by."""
    return "(blank)" if is_blank(text) else text


def one_line(text: str) -> str:
    """Replace line breaks by spaces."""
    return _BREAKS.sub(" ", text)


def indented(text: str) -> str:
    """Printable text with all lines but the first indented, so that none of them looks like a new record."""
    return printable(text).replace("\n", "\n  ")


def printable_json(encoded: bytes) -> bytes:
    """Escape in UTF-8 JSON what a terminal or a page would interpret; its meaning stays the same."""
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", encoded.decode()).encode()
