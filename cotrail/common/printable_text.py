"""Text from elsewhere, as a terminal or a page may show it: it is read, and commands nobody.

Questions, paragraphs, model output, names and errors may hold escape sequences, which clear a screen or write a
clipboard, and direction marks, which reorder what stands beside them. What is stored stays as it is.
"""

import re

UNPRINTABLE = "\ufffd"
"""Stands where something was taken out, so that a reader sees that there was something."""

_SEQUENCE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
"""What CSI begins: colours, movements of the cursor, what is erased."""

_STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
"""What DCS, SOS, OSC, PM or APC begins and its terminator ends: titles, links, the clipboard."""

_ESCAPE = r"\x1b[ -/]*[0-~]?"
"""Any other sequence, or one that is never ended."""

_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
"""C0 but tab and newline, DEL, C1, Unicode's own separators, which end isolates, and surrogates, which are no text."""

COMMANDS = re.compile(f"(?:{_SEQUENCE}|{_STRING}|{_ESCAPE}|{_CONTROL})+")
"""What a terminal takes for a command or can't take at all."""

_BREAKS = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
"""Whatever anything takes for the end of a line."""

_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u206f]")
"""What embeds, overrides or isolates a direction, until something ends it."""

_LEFTWARDS = "\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
"""What is written from right to left: the blocks of such scripts, and the mark of that direction."""

_PASSAGE = re.compile(rf"[{_LEFTWARDS}]+(?:(?:[^\w\n]|[\d_])*[{_LEFTWARDS}]+)*")
"""Text from right to left, with the spaces, digits and marks that stand within it and its line."""

_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
"""What JSON leaves as it is, though a terminal doesn't."""


def printable(text: str) -> str:
    """The text with nothing in it that a terminal or a browser obeys; its lines and tabs stay."""
    return isolated(without_commands(text))


def without_commands(text: str) -> str:
    """The text without control characters and escape sequences."""
    return COMMANDS.sub(UNPRINTABLE, text.replace("\r\n", "\n"))


def isolated(text: str) -> str:
    """The text with every passage from right to left within an isolate: nothing around it changes its place."""
    return _PASSAGE.sub("\u2068\\g<0>\u2069", _DIRECTIONS.sub("", text))


def one_line(text: str) -> str:
    """The text with spaces for its line breaks."""
    return _BREAKS.sub(" ", text)


def indented(text: str) -> str:
    """Printable text whose lines but the first can't be taken for the beginning of anything."""
    return printable(text).replace("\n", "\n  ")


def printable_json(encoded: bytes) -> bytes:
    """The same JSON, in UTF-8, with escapes for what a terminal or a page would obey."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()
