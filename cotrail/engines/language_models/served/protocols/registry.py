"""All wire protocols, by the `api` of a server's table."""

from collections.abc import Mapping

from cotrail.engines.language_models.endpoint import Api
from cotrail.engines.language_models.served.protocols.chat import Chat
from cotrail.engines.language_models.served.protocols.completions import Completions
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol

PROTOCOLS: Mapping[Api, WireProtocol] = {"completions": Completions(), "chat": Chat()}
