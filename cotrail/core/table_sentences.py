"""Tables as sentences, in the manner of table 8 of Rethinking with Retrieval, and such premises cut apart again."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cotrail.common.sentence_boundaries import segments
from cotrail.core.questions import Hit, Paragraph

VERSION = 1
"""Version of how premises are cut; a change that finds other sentences raises it."""

_DATE = re.compile(r"\(\d{4}-\d{2}-\d{2}\)")
LONGEST_NAME = 255
"""Characters of a title and of a key, at most; Wikipedia's titles have no more bytes."""

_HEADS = re.compile(r"(?:^|\.\s++)The (?:(\S.*?) are |\S.*)")
"""What stands between "The" and "are", or the rest of a line without a further "are"."""

_DATED = re.compile(rf"\A(?>(\S.{{0,{LONGEST_NAME - 1}}}?) was (?=\S))\S.*? on ")
_OF = re.compile(" of ")


class Table:
    """A knowledge source: the sentences of a question's own table, given as a premise of `table_sentences`."""

    @property
    def revision(self) -> str:
        """The version of this code."""
        return f"table-{VERSION}"

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:  # noqa: ARG002 - a source of one text
        """All of the premise's sentences, each once, in their order; none is better than another."""
        sentences = dict.fromkeys(premise_sentences(text))
        return tuple(
            Hit(paragraph=Paragraph(id=f"table:{rank:04}", title="", text=sentence), rank=rank, score=1.0)
            for rank, sentence in enumerate(sentences, start=1)
        )


def table_sentences(title: str, rows: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A sentence for each row of a table about `title`, in their order; rows without a value have none.

    "TITLE was KEY on VALUE." where the value holds a date as infoboxes mark them ("(1948-11-14)"), otherwise
    "The KEY of TITLE are VALUE.", several values with commas between them.
    """
    entries = ((" ".join(key.split()), _listed(values)) for key, values in rows.items())
    return tuple(_sentence(" ".join(title.split()), key, value) for key, value in entries if value)


def premise_sentences(premise: str) -> tuple[str, ...]:
    """A premise's sentences in their order: those of `table_sentences`, however many full stops a value holds.

    Lines are cut apart first. A text that isn't a table's is cut into sentences as any other.
    """
    return tuple(sentence for line in premise.splitlines() if line.strip() for sentence in _cut(line.strip()))


def _sentence(title: str, key: str, value: str) -> str:
    return f"{title} was {key} on {value}." if _DATE.search(value) else f"The {key} of {title} are {value}."


def _listed(values: Sequence[str]) -> str:
    *others, last = [" ".join(value.split()) for value in values if value.strip()] or [""]
    return f"{', '.join(others)}, and {last}" if others else last


def _cut(line: str) -> Iterator[str]:
    title = _title(line)
    if title is None:
        yield from filter(None, map(str.strip, segments(line)))
    else:
        yield from boundary(title).split(line)


def boundary(title: str) -> re.Pattern[str]:
    """Finds what separates the sentences of a table about this title, of at most `LONGEST_NAME` characters."""
    named = re.escape(title)
    within = rf"(?:(?!\. [A-Z]).){{1,{LONGEST_NAME}}}?"  # a key, not the rest of a value and a key
    return re.compile(rf"(?<=\.)\s++(?=The {within} of {named} are |{named} was {within} on )")


def _title(line: str) -> str | None:
    """The table's subject: the text that most of its sentences name behind an "of", the longest of equals."""
    heads: list[str] = _HEADS.findall(line)
    counts = Counter(
        head[match.end() :] for head in heads for match in _OF.finditer(head, max(0, len(head) - LONGEST_NAME - 4))
    )
    if counts:
        return max(counts, key=lambda title: (counts[title], len(title)))
    dated = _DATED.match(line)
    return dated[1] if dated else None
