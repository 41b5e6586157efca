r"""Chains of queries, as models write them (Search-in-the-Chain, section 3.1).

The form that the prompts ask for, each tag at the beginning of a line:

    [Query 1]: ... [Answer 1]: ... [Unsolved Query]: ... [Final Content]: ...

Models write much else: other brackets or none, Markdown, tags in the middle of a line, other numbers or none. Whatever
can be distinguished is read, and every departure is recorded as a `FormatViolation`. The time grows linearly with the
message.
"""

# ruff: noqa: RUF001 - models write the brackets of other scripts
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct

from cotrail.common.answer_normalization import normalized

What = Literal[
    "tag", "number", "text outside", "no query", "no answer", "second answer", "answer to an unsolved query", "cut",
    "further example", "nothing", "too many queries", "no final content", "no marks", "unknown mark",
]  # fmt: skip
"""What a format violation is: a `tag` that isn't in the strict form, or a `number` that is missing or doesn't follow;
`text outside` of queries, answers and final content; a tag with `no query` or a query with `no answer`; a text `cut`
off by the token limit; a `further example` behind the chain; a message with `nothing` to read, or more queries than are
looked at. Of the final content: that there is none, or no mark in it, or a mark of a pair that there isn't."""

MOST_VIOLATIONS = 20
"""How many violations of a round are recorded."""

MOST_CHARACTERS = 80
"""How much of a text a violation quotes."""


class FormatViolation(Struct, frozen=True, kw_only=True):
    """What a model's text has in another form than it was asked for; text: the beginning of the place."""

    round: int
    what: What
    text: str


def quoted(text: str) -> str:
    """The beginning of a text, as a violation quotes it; an ellipsis stands for the rest."""
    whole = text.strip()
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[: MOST_CHARACTERS - 1]}…"


Kind = Literal["query", "unsolved", "answer", "final", "question"]

AnswerRule = Literal["tag", "line"]
"""What counts as a query's answer: the text behind its `tag`; or, as in the authors' released code, the next `line`
with the word "Answer" in it, all of it."""


class Pair(Struct, frozen=True, kw_only=True):
    """A query and its answer; the answer is empty where the model gave none."""

    query: str
    answer: str = ""
    unsolved: bool = False


class ChainOfQuery(Struct, frozen=True, kw_only=True):
    """What a message says.

    numbers: those of the queries, by which the message itself names them; a query without one has the next.
    final: the text behind the last [Final Content] that has any, None where none has; rest: the message without its
    tags and queries, which is all of a message that has none.
    """

    pairs: tuple[Pair, ...]
    numbers: tuple[int, ...]
    final: str | None
    rest: str
    violations: tuple[FormatViolation, ...]


def read_chain(
    message: str,
    *,
    round: int,  # noqa: A002
    most: int,
    answers: AnswerRule = "tag",
) -> ChainOfQuery:
    """Read a model's message, whatever it is; round: for the violations; most: how many queries count."""
    text = message.rpartition(_THOUGHT)[2]  # without the thoughts that a reasoning model writes before it
    parser = _Parser(text)
    if len(text) < len(message):
        parser.record("text outside", message)
    for tag, following in parser.sections():
        parser.take(tag, text[tag.end : following])
    drafts = parser.asking()
    if len(drafts) > most:
        parser.record("too many queries", drafts[most].query)
    pairs = tuple(parser.pair(draft, answers) for draft in drafts[:most])
    if not pairs and not parser.final:
        parser.record("nothing", message)
    violations = tuple(FormatViolation(round=round, what=what, text=quoted) for what, quoted in parser.violations)
    return ChainOfQuery(
        pairs=pairs,
        numbers=_numbers(drafts[:most]),
        final=parser.final or None,
        rest="\n".join(filter(None, parser.rest)),
        violations=violations,
    )


class _Tag(Struct, frozen=True):
    kind: Kind
    number: int | None
    start: int
    end: int
    is_strict: bool


class _DraftPair(Struct):
    """A query while its message is read; answer: None until its tag is met."""

    tag: _Tag
    query: str
    unsolved: bool
    answer: str | None = None


class _Parser:
    def __init__(self, message: str) -> None:
        self.message = message
        self.final = ""
        self.rest: list[str] = []
        self.violations: list[tuple[What, str]] = []
        self._drafts: list[_DraftPair] = []
        self._numbered: dict[int, _DraftPair] = {}

    def sections(self) -> Iterator[tuple[_Tag, int]]:
        """The tags, each with the place where its text ends."""
        end = _end(self.message)
        if end < len(self.message):
            self.record("cut", self.message[end:])
        tags = list(_tags(self.message, end))
        if tags and tags[-1].kind == "question" and any(tag.kind != "question" for tag in tags):
            end = tags.pop().start
            self.record("further example", self.message[end:])
        before = self.message[: tags[0].start if tags else end].strip()
        self.rest.append(before)
        if tags and (outside := before.strip(_DECORATION)):
            self.record("text outside", outside)
        places = [*(tag.start for tag in tags), end]
        return zip(tags, places[1:], strict=True)

    def take(self, tag: _Tag, behind: str) -> None:
        if not tag.is_strict:
            self.record("tag", self.message[tag.start : tag.end])
        match tag.kind:
            case "query":
                self._ask(tag, self._query(behind, tag), unsolved=False)
            case "unsolved":
                self._leave_unsolved(tag, self._query(behind, tag))
            case "answer":
                answer = _text(behind, tag)
                self.rest.append(answer)
                self._answer(tag, answer)
            case "final":
                self._end_with(_text(behind, tag))
            case "question":
                self.record("text outside", behind)
                self.rest.append(behind.strip().partition("\n")[2].strip())

    def asking(self) -> list[_DraftPair]:
        for draft in self._drafts:
            if not draft.query:
                self.record("no query", self.message[draft.tag.start : draft.tag.end])
        return [draft for draft in self._drafts if draft.query]

    def pair(self, draft: _DraftPair, answers: AnswerRule) -> Pair:
        answer = draft.answer or ""
        if draft.unsolved and answer:
            self.record("answer to an unsolved query", answer)
        if not draft.unsolved and not answer:
            self.record("no answer", draft.query)
        if answers == "line":
            answer = self._line_behind(draft.tag.end)
        return Pair(query=draft.query, answer=answer, unsolved=draft.unsolved)

    def record(self, what: What, text: str) -> None:
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append((what, quoted(text)))

    def _end_with(self, final: str) -> None:
        if final:
            if self.final:
                self.record("text outside", self.final)
            self.final = final

    def _query(self, behind: str, tag: _Tag) -> str:
        """A query is one line, and what stands below it before the next tag is no part of it."""
        query, _, below = behind.strip().partition("\n")
        if stray := below.strip(_DECORATION):
            self.record("text outside", stray)
            self.rest.append(stray)
        return _text(query, tag)

    def _ask(self, tag: _Tag, query: str, *, unsolved: bool) -> None:
        if not self._follows(tag):
            self.record("number", self.message[tag.start : tag.end])
        draft = _DraftPair(tag, query, unsolved)
        self._drafts.append(draft)
        if tag.number is not None:
            self._numbered[tag.number] = draft

    def _follows(self, tag: _Tag) -> bool:
        """Return whether its number continues those before it; an unsolved query may have none, and count or not."""
        if tag.number is None:
            return tag.kind == "unsolved"
        free = 1
        for draft in reversed(self._drafts[-_NEAR_CHARACTERS:]):
            if draft.tag.number is not None:
                return draft.tag.number < tag.number <= draft.tag.number + free
            free += 1
        return True

    def _leave_unsolved(self, tag: _Tag, query: str) -> None:
        """An unsolved query of its own, or a flag on the query before it."""
        last = self._drafts[-1] if self._drafts else None
        if last is not None and _is_flag(query, last):
            last.query, last.unsolved = last.query or query, True
        else:
            self._ask(tag, query, unsolved=True)

    def _answer(self, tag: _Tag, answer: str) -> None:
        draft = self._draft_of(tag)
        if draft is None:
            self.record("no query", answer)
        elif draft.answer is not None:
            self.record("second answer", answer)
        else:
            if tag.number is None or draft.tag.number not in {tag.number, None}:
                self.record("number", self.message[tag.start : tag.end])
            draft.answer = answer

    def _draft_of(self, tag: _Tag) -> _DraftPair | None:
        """The query that an answer belongs to: that of its number unless it has one already, else the last one."""
        draft = None if tag.number is None else self._numbered.get(tag.number)
        if draft is not None and draft.answer is None:
            return draft
        return self._drafts[-1] if self._drafts else None

    def _line_behind(self, place: int) -> str:
        lines = self._lines_with_answers
        index = bisect_right(lines, (place, ""))
        return lines[index][1] if index < len(lines) else ""

    @cached_property
    def _lines_with_answers(self) -> list[tuple[int, str]]:
        """The lines with the word "Answer" in them, each with its place."""
        return [(match.start(), match[0].strip()) for match in _ANSWER_LINE.finditer(self.message)]


_OPENING = "[［【〔〖「『（(<{《"
_CLOSING = "]］】〕〗」』）)>}》"
_DECORATION = " \t\r\n*_`#>~-"
_THOUGHT = "</think>"
_FENCE = "```"
_NEAR_CHARACTERS = 10
"""How many queries back a number is looked for; half the length of the longest decoration before a tag."""

_TAG = re.compile(
    rf"(?P<opened>[{re.escape(_OPENING)}]{{0,3}})[ \t*_`]{{0,4}}"
    r"(?P<word>unsolved(?:[ \t_-]{0,3}(?:query|question))?|final[ \t_-]{0,3}(?:content|answer)|query|answer|question)"
    r"[ \t]{0,3}[#.]?[ \t]{0,3}(?P<number>\d{0,9})[ \t*_`]{0,4}"
    rf"(?P<closed>[{re.escape(_CLOSING)}]{{0,3}})[ \t*_`]{{0,4}}(?P<colon>[:：]?)[*_`]{{0,4}}",
    re.IGNORECASE,
)
_STRICT = re.compile(r"\[(?:Query [1-9]\d*|Answer [1-9]\d*|Unsolved Query(?: [1-9]\d*)?|Final Content)\]:", re.ASCII)
_LINE_BEGINNING = re.compile(r"[ \t\r*_`#>~•–-]*+(?:\d{1,3}[.)])?[ \t*_`]*+")
_BLANK = re.compile(r"[ \t\r*_`]{0,8}(?:\n|$)")
_ANSWER_LINE = re.compile(r"^.*Answer.*$", re.MULTILINE)
_TAGS_BEGUN = ("query", "answer", "unsolved query", "final content")
_CUT = re.compile(r"\A[*_`#\s]*+(?:query|answer|unsolved query|final content)\s*\d*[*_`]*", re.IGNORECASE)


def _tags(message: str, end: int) -> Iterator[_Tag]:
    """The tags in their order, up to a question behind others, with which a further example begins."""
    is_begun = is_final = False
    unanswered: set[int] = set()
    for match in _TAG.finditer(message, 0, end):
        kind, line = _kind(match), _line(match)
        number = int(match["number"]) if match["number"] else None
        if not _is_tag(match, begins=line is not None):
            continue
        # The final content may speak of answers, and refer to [Query 1] without asking it.
        is_open = line is not None and number in unanswered
        if is_final and (not match["colon"] or (kind == "answer" and not is_open)):
            continue
        is_strict = line == match.start() and _STRICT.fullmatch(match[0]) is not None
        yield _Tag(kind, number, match.start() if line is None else line, match.end(), is_strict)
        if is_begun and kind == "question":
            return
        is_begun, is_final = is_begun or kind != "question", kind == "final"
        if number is not None:
            (unanswered.add if kind == "query" else unanswered.discard)(number)


def _kind(match: re.Match[str]) -> Kind:
    word = match["word"].lower()
    if word.startswith("unsolved"):
        return "unsolved"
    if word.startswith("final"):
        return "final"
    if word == "answer":
        return "answer"
    # Some models number the queries as questions; [Question] without a number is the question itself.
    return "query" if word == "query" or match["number"] else "question"


def _line(match: re.Match[str]) -> int | None:
    """The place where its line begins; None if other words stand before it there."""
    start = max(0, match.start() - 2 * _NEAR_CHARACTERS)
    before, newline, decoration = match.string[start : match.start()].rpartition("\n")
    is_whole = bool(newline) or start == 0
    return start + len(before + newline) if is_whole and _LINE_BEGINNING.fullmatch(decoration) else None


def _is_tag(match: re.Match[str], *, begins: bool) -> bool:
    """Return whether these words are a tag, and not part of a sentence that speaks of a query or an answer."""
    opened, closed, colon = (bool(match[group]) for group in ("opened", "closed", "colon"))
    is_alone = _BLANK.match(match.string, match.end()) is not None
    if not opened and not closed:
        return begins and (colon or (is_alone and (bool(match["number"]) or _kind(match) == "final")))
    return colon or (opened and closed and (begins or is_alone))


def _end(message: str) -> int:
    """The place where the message ends, before a tag that was cut off."""
    near = max(0, len(message) - 4 * _NEAR_CHARACTERS)
    begun = max(message.rfind(bracket, near) for bracket in "[［【")
    if begun < 0:
        return len(message)
    rest = message[begun + 1 :].strip().lower()
    is_cut = _CUT.fullmatch(rest) is not None or any(tag.startswith(rest) for tag in _TAGS_BEGUN)
    return begun if is_cut else len(message)


def _text(behind: str, tag: _Tag) -> str:
    text = behind.strip().removesuffix(_FENCE).rstrip()
    if tag.is_strict:
        return text
    # What closes the Markdown or the bracket that the tag opened belongs to the tag.
    text = text.strip(_DECORATION)
    return text[:-1].rstrip() if text.endswith("]") and text.count("[") < text.count("]") else text


def _numbers(drafts: Sequence[_DraftPair]) -> tuple[int, ...]:
    numbers: list[int] = []
    for draft in drafts:
        numbers.append(draft.tag.number or (numbers[-1] + 1 if numbers else 1))
    return tuple(numbers)


def _is_flag(query: str, last: _DraftPair) -> bool:
    """Return whether an unsolved query only says that the one before it is unsolved."""
    if last.answer or (query and last.unsolved):
        return False
    return not query or not last.query or normalized(query) == normalized(last.query)
