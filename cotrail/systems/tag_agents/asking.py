"""An agent as it is set up for a question: its record, its words and its settings, and how it has the model write."""

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Piece, Prompt, Text
from cotrail.systems.parts.searching import shown
from cotrail.systems.parts.words import Filling, own_words, worded
from cotrail.systems.tag_agents.agents import TagAgent, TagAgentSettings


class SetUp(Struct, frozen=True, kw_only=True):
    """An agent with what a run brings."""

    agent: TagAgent
    shots: Shots
    settings: TagAgentSettings

    def words(self, name: str, **values: Filling) -> tuple[str | Piece, ...]:
        """The pieces of its prompt of that name."""
        return worded(self.shots, own_words(self.agent.words), name, **values)

    def message(self, prompt: Prompt, stop: tuple[str, ...] = ()) -> Reason:
        """What the model writes next."""
        settings = self.settings
        return Reason(
            prompt=prompt,
            max_tokens=settings.max_tokens,
            until="stop",
            stop=stop,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            repetition_penalty=settings.repetition_penalty,
        )

    def documents(self, paragraphs: tuple[Paragraph, ...], yields: int = 1) -> tuple[Piece, ...]:
        """The paragraphs in the agent's form."""
        tokens, pieces = self.settings.found_tokens, list[Piece]()
        for each in shown(paragraphs, self.agent.document, self.settings.search):
            if pieces and self.agent.gap:
                pieces.append(Text(self.agent.gap, tokens=tokens))
            pieces.append(replace(each, yields=yields, tokens=tokens))
        return tuple(pieces)

    def between_tags(self, *pieces: Piece) -> tuple[Piece, ...]:
        """These between the tags of what was found, all cut together where the settings limit their tokens."""
        before, behind = (Text(each, tokens=self.settings.found_tokens) for each in self.agent.found)
        return (before, *pieces, behind)

    def told(self, name: str) -> Text:
        """The words of that name, which have no places, as one piece."""
        return Text("".join(map(str, self.words(name))))
