"""Messages: what the model writes in a conversation, verbatim, and where they ended too early."""

from cotrail.core.actions.generate import Reason
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.searchain.oddities import MOST_CHARACTERS
from cotrail.systems.searchain.settings import SearChainSettings
from cotrail.systems.searchain.tree import GrowingTree


def write(chat: Prompt, max_tokens: int, settings: SearChainSettings) -> Part[Generated]:
    """The model's next message, as far as the most tokens reach or to a stop string."""
    message = Reason(
        prompt=chat, max_tokens=max_tokens, until="stop", stop=settings.stop, temperature=settings.temperature
    )
    return expect((yield message), Generated)


def note_end(written: Generated, round: int, tree: GrowingTree) -> None:  # noqa: A002
    """Record where a message was cut off, by the token limit or before a further example."""
    if written.ended == "length":
        tree.record(round, "cut", written.text[-MOST_CHARACTERS:])
    if written.ended == "stop":
        tree.record(round, "further example", written.stop)
