"""Tables as sentences, in the manner of table 8 of Rethinking with Retrieval, and such premises cut apart again."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sentencex import segment

from cotrail.core.paragraphs import Hit, Paragraph

VERSION = 1
"""Version of how premises are cut; a change that finds other sentences raises it."""

_DATE = re.compile(r"\(\d{4}-\d{2}-\d{2}\)")
_HEADS = re.compile(r"(?:^|\.\s+)The (\S.*?) are ")
_DATED = re.compile(r"(\S.*?) was \S.*? on ")


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
    told = ((" ".join(key.split()), _listed(values)) for key, values in rows.items())
    return tuple(_sentence(" ".join(title.split()), key, value) for key, value in told if value)


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
        yield from filter(None, map(str.strip, segment("en", line)))
        return
    named = re.escape(title)
    within = r"(?:(?!\. [A-Z]).)+?"  # a key, not the rest of a value and a key
    yield from re.split(rf"(?<=\.)\s+(?=The {within} of {named} are |{named} was {within} on )", line)


def _title(line: str) -> str | None:
    """The table's subject: the text that most of its sentences name behind an "of", the longest of equals."""
    heads: list[str] = _HEADS.findall(line)
    found = Counter(head[match.end() :] for head in heads for match in re.finditer(" of ", head))
    if found:
        return max(found, key=lambda title: (found[title], len(title)))
    dated = _DATED.match(line)
    return dated[1] if dated else None
