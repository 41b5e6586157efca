"""What an agent is shown of a search: the paragraphs between its tags, or what is read in them for it."""

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Piece, Prompt, Text, user
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.searching import found, page_of
from cotrail.systems.parts.steps import text_of
from cotrail.systems.tag_agents.asking import SetUp

FINAL = "**Final Information**"
NOT_HELPFUL = "No helpful information found."
LAST_STEPS = 4
"""Steps of the reasoning so far that are always shown to who reads, counted from the end."""

LINK = "<|begin_click_link|>", "<|end_click_link|>"
CLICKED = "\n\n<|begin_click_result|>", "<|end_click_result|>\n\n"


class Observed(Struct, frozen=True, kw_only=True):
    """What is put behind a query, the queries that were searched for, and the paragraphs that were found."""

    pieces: tuple[Piece, ...]
    queries: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


def observed(query: str, reasoning: str, at: SetUp, yields: int) -> Part[Observed]:
    """Search for a query, and show between the agent's tags what was found, or what is read in it.

    reasoning: all that the agent has written; yields: see `Shown`.
    """
    paragraphs = yield from found(query, at.settings.search)
    if not at.agent.reads:
        return Observed(pieces=at.between_tags(*at.documents(paragraphs, yields)), paragraphs=paragraphs)
    steps = told_steps(reasoning, at.agent.query[0], at.agent.found[0].strip())
    words = at.words("reading", query=query, reasoning=steps, documents=at.documents(paragraphs))
    prompt = Prompt(turns=(user(*words),))
    if at.agent.reads == "explorer":
        return (yield from explored(prompt, paragraphs, at))
    text = yield from text_of(at.message(prompt))
    return Observed(pieces=at.between_tags(Text(final_information(text))), paragraphs=paragraphs)


def explored(prompt: Prompt, paragraphs: tuple[Paragraph, ...], at: SetUp) -> Part[Observed]:
    """What an explorer reports, who searches further and opens pages (WebThinker, section 3.2)."""
    opened, text = at.agent.query, ""
    for number in range(at.settings.explored):
        written = expect((yield at.message(prompt, stop=(opened[1], LINK[1]))), Generated)
        text = written.text
        prompt = prompt.wrote(text + written.stop)
        _, is_open, asked = text.rpartition(opened[0] if written.stop == opened[1] else LINK[0])
        if not written.stop or not is_open or number + 1 == at.settings.explored:
            break
        yields = at.settings.explored - number
        if written.stop == opened[1]:
            seen = yield from found(asked, at.settings.search)
            shown = at.between_tags(*at.documents(seen, yields))
        else:
            seen = (yield from page_of(asked.strip(), at.settings.search))[: at.settings.search.count]
            shown = (Text(CLICKED[0]), *at.documents(seen, yields), Text(CLICKED[1]))
        prompt, paragraphs = prompt.append(*shown), (*paragraphs, *seen)
    return Observed(pieces=at.between_tags(Text(final_information(text))), paragraphs=paragraphs)


def told_steps(reasoning: str, *marks: str) -> str:
    """The reasoning's lines as numbered steps: the first, the last ones and those with a mark, "..." for others."""
    steps = [step for each in reasoning.split("\n") if (step := each.strip())]
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        if number == 1 or number > len(steps) - LAST_STEPS or any(mark in step for mark in marks):
            lines.append(f"Step {number}: {step}")
        elif lines[-1] != "...":
            lines.append("...")
    return "\n\n".join(lines)


def final_information(text: str) -> str:
    """What stands behind the last mark of what was found, in one line."""
    _, is_marked, information = text.rpartition(FINAL)
    return " ".join(information.split()) if is_marked and information.strip() else NOT_HELPFUL
