"""Tools of agents: searching the corpus, opening a page of it, and reading a page for a goal."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cotrail.core.calls import Call, Tool
from cotrail.core.prompts import Piece
from cotrail.core.questions import Paragraph
from cotrail.core.system import Part
from cotrail.systems.parts.searching import SearchSettings, each_found, found, page_of, shown

NOTHING_FOUND = "Nothing was found."
DOCUMENT = "[{number}] {title}\n{text}\n"
MOST_QUERIES = 10
"""Queries of one call that are searched for."""


class Observed(Struct, frozen=True):
    """What a tool says: its words, and the paragraphs among them."""

    pieces: tuple[str | Piece, ...]
    paragraphs: tuple[Paragraph, ...] = ()


class AgentTool(Struct, frozen=True, kw_only=True):
    """A tool: as the model is shown it, the type of its arguments, and what it does with these.

    run: takes the arguments, the settings of searches, and how soon what it shows is left out (see `Shown`).
    """

    tool: Tool
    arguments: type[Struct]
    run: Callable[[Any, SearchSettings, int], Part[Observed]]
    searches: bool = False


Tools = Mapping[str, AgentTool]


class SearchArguments(Struct, frozen=True):
    """A search."""

    query: Annotated[str, Meta(description="What to search for: a few telling words or a short question.")]


class SearchesArguments(Struct, frozen=True):
    """Several searches at once."""

    query: Annotated[
        tuple[str, ...] | str, Meta(description="One query, or a list of queries that are all searched for.")
    ]


class OpenArguments(Struct, frozen=True):
    """A page."""

    title: Annotated[str, Meta(description="The title of the page, as a search shows it.")]
    # Not `Positive`: the schema is a part of prompts, and those of recorded runs name no greatest number.
    part: Annotated[int, Meta(ge=1, description="Which part of a long page, from 1.")] = 1


def searched(arguments: SearchArguments, settings: SearchSettings, yields: int) -> Part[Observed]:
    """Search for one query."""
    return documents((yield from found(arguments.query, settings)), settings, yields)


def all_searched(arguments: SearchesArguments, settings: SearchSettings, yields: int) -> Part[Observed]:
    """Search for each query at once."""
    queries = (arguments.query,) if isinstance(arguments.query, str) else arguments.query[:MOST_QUERIES]
    results = yield from each_found(queries, settings)
    seen = [documents(each, settings, yields) for each in results]
    headed = zip(queries, seen, strict=True)
    pieces = tuple(piece for query, each in headed for piece in (f"Results for: {query}\n", *each.pieces))
    paragraphs = tuple(dict.fromkeys(paragraph for each in seen for paragraph in each.paragraphs))
    return Observed(pieces or (NOTHING_FOUND,), paragraphs)


def opened(arguments: OpenArguments, settings: SearchSettings, yields: int) -> Part[Observed]:
    """Open the page of a title, or the one whose title is most like it."""
    page = yield from page_of(arguments.title, settings)
    start = (arguments.part - 1) * PART_PARAGRAPHS
    part = page[start : start + PART_PARAGRAPHS]
    observed = documents(part, settings, yields)
    parts = -(-len(page) // PART_PARAGRAPHS)
    behind = (f"Part {arguments.part} of {parts}.",) if part and parts > 1 else ()
    return Observed((*observed.pieces, *behind), observed.paragraphs)


PART_PARAGRAPHS = 20
"""Paragraphs of a page that are shown at once."""


def documents(paragraphs: tuple[Paragraph, ...], settings: SearchSettings, yields: int) -> Observed:
    """Paragraphs as a tool shows them."""
    return Observed(shown(paragraphs, DOCUMENT, settings, yields) or (NOTHING_FOUND,), paragraphs)


def schema(arguments: type[Struct]) -> str:
    """The JSON Schema of arguments, whole: providers resolve no references."""
    (_, *_), components = msgspec.json.schema_components([arguments])
    described = components[arguments.__name__]
    kept = {name: described[name] for name in ("type", "properties", "required")}
    return msgspec.json.encode(kept, order="sorted").decode()


def described(name: str, description: str, arguments: type[Struct]) -> Tool:
    """A tool as the model is shown it."""
    return Tool(name=name, description=description, parameters=schema(arguments))


SEARCH = AgentTool(
    tool=described(
        "search", "Searches for paragraphs and shows the best, each with the title of its page.", SearchArguments
    ),
    arguments=SearchArguments,
    run=searched,
    searches=True,
)
SEARCHES = AgentTool(
    tool=described("search", "Searches for each query and shows the best paragraphs of each.", SearchesArguments),
    arguments=SearchesArguments,
    run=all_searched,
    searches=True,
)
OPEN = AgentTool(
    tool=described("open", "Opens the page of a title and shows its paragraphs.", OpenArguments),
    arguments=OpenArguments,
    run=opened,
)


def refused(call: Call, tools: Tools) -> str:
    """Why a call can't be carried out, as the model receives it; empty where it can."""
    if not call.name:
        return "The call can't be read. It is a JSON object with the tool's name and its arguments."
    if call.name not in tools:
        return f"There is no tool {call.name!r}. There are: {', '.join(tools)}."
    if call.read(tools[call.name].arguments) is None:
        fields = ", ".join(tools[call.name].arguments.__struct_fields__)
        return f"The arguments of {call.name} can't be read. They are a JSON object with: {fields}."
    return ""
