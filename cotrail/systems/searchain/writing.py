"""Messages: what the model writes in a conversation, verbatim."""

from cotrail.core.actions.generate import Reason
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.searchain.settings import SearChainSettings


def write(chat: Prompt, max_tokens: int, settings: SearChainSettings) -> Part[Generated]:
    """The model's next message, as far as the most tokens reach."""
    message = Reason(prompt=chat, max_tokens=max_tokens, until="stop", temperature=settings.temperature)
    return expect((yield message), Generated)
