"""All wire protocols, by the `api` of a server's table."""

from collections.abc import Mapping

from cotrail.engines.language_models.endpoint import Api
from cotrail.engines.language_models.served.protocols.anthropic import AnthropicMessages
from cotrail.engines.language_models.served.protocols.chat import Chat, Completions
from cotrail.engines.language_models.served.protocols.gemini import Gemini
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.protocols.responses import Responses

PROTOCOLS: Mapping[Api, WireProtocol] = {
    "completions": Completions(),
    "chat": Chat(),
    "responses": Responses(),
    "anthropic": AnthropicMessages(),
    "gemini": Gemini(),
}
