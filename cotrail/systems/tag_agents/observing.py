"""What an agent is shown of a search: the paragraphs between its tags, or what a further prompt reads in them."""

from msgspec import Struct

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Piece, Prompt, Shown, Text, user
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.searching import found, shown
from cotrail.systems.parts.words import own_words, worded
from cotrail.systems.tag_agents.agents import TagAgent, TagAgentSettings

FINAL = "**Final Information**"
NOT_HELPFUL = "No helpful information found."
LAST_STEPS = 4
"""Steps of the reasoning so far that the reading prompt always shows, counted from the end."""


class Observed(Struct, frozen=True, kw_only=True):
    """What is put behind a query, and the paragraphs that were found."""

    pieces: tuple[Piece, ...]
    paragraphs: tuple[Paragraph, ...] = ()


def observed(
    query: str, reasoning: str, agent: TagAgent, shots: Shots, settings: TagAgentSettings, yields: int
) -> Part[Observed]:
    """Search for a query, and show what was found between the agent's tags."""
    paragraphs = yield from found(query, settings.search)
    if not agent.reads:
        return Observed(
            pieces=between_tags(documents(paragraphs, agent, settings, yields), agent, settings), paragraphs=paragraphs
        )
    information = yield from read_in_documents(query, paragraphs, reasoning, agent, shots, settings)
    return Observed(pieces=between_tags((Text(information),), agent, settings), paragraphs=paragraphs)


def between_tags(pieces: tuple[Piece, ...], agent: TagAgent, settings: TagAgentSettings) -> tuple[Piece, ...]:
    """These between the tags of what was found, all cut together where the settings limit their tokens."""
    before, behind = (Text(each, tokens=settings.found_tokens) for each in agent.found)
    return (before, *pieces, behind)


def documents(
    paragraphs: tuple[Paragraph, ...], agent: TagAgent, settings: TagAgentSettings, yields: int
) -> tuple[Piece, ...]:
    """The paragraphs in the agent's form."""
    pieces: list[Piece] = []
    for each in shown(paragraphs, agent.document, settings.search, yields):
        gap = [Text(agent.gap, tokens=settings.found_tokens)] if pieces and agent.gap else []
        pieces += [
            *gap,
            Shown(
                paragraph=each.paragraph, form=each.form, words=each.words, yields=yields, tokens=settings.found_tokens
            ),
        ]
    return tuple(pieces)


def read_in_documents(
    query: str,
    paragraphs: tuple[Paragraph, ...],
    reasoning: str,
    agent: TagAgent,
    shots: Shots,
    settings: TagAgentSettings,
) -> Part[str]:
    """What helps of the paragraphs, as a further prompt reads them (Search-o1, section 3.4: Reason-in-Documents)."""
    words = worded(
        shots,
        own_words(agent.words),
        "documents",
        query=query,
        reasoning=told_steps(reasoning, agent.query[0], agent.found[0].strip()),
        documents=documents(paragraphs, agent, settings, yields=1),
    )
    reason = message(Prompt(turns=(user(*words),)), agent, settings)
    return final_information(expect((yield reason), Generated).text)


def message(prompt: Prompt, agent: TagAgent, settings: TagAgentSettings, *, stops: bool = False) -> Reason:
    """What the model writes next, as the agent's is drawn; stops: whether a query ends it."""
    return Reason(
        prompt=prompt,
        max_tokens=settings.max_tokens,
        until="stop",
        stop=agent.stop if stops else (),
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        repetition_penalty=settings.repetition_penalty,
    )


def told_steps(reasoning: str, *marks: str) -> str:
    """The reasoning as numbered steps: the first, the last ones and those with one of these marks, "..." for others."""
    steps = [step for each in reasoning.split("\n\n") if (step := each.strip())]
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
