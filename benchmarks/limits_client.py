"""A process that asks a hosted model as a worker does: many steps at once, which come again later where they must.

`python -m benchmarks.limits_client` reads an `Order` from its input as JSON, prints a line once it is ready, begins at
the next line of its input, and goes on until that ends.
"""

import random
import sys
import threading
import time

import msgspec
from msgspec import Struct

from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, user
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.model import ServedModel
from cotrail.engines.language_models.served.protocols.chat import Chat
from cotrail.engines.server_address import Limits
from cotrail.errors import BusyError
from cotrail.tasks.engines import SharedLimiter

SWEEP_SECONDS = 1.0
"""How often maintenance sends steps that were given back."""

WORDS = "The town lies where the river meets the sea. "


class Order(Struct, frozen=True, kw_only=True):
    """What to ask: url: of the server; broker: the Redis that the limits are shared through; account: of the limits.

    steps: how many ask at once; most: their `max_tokens`; limits: of the table.
    """

    url: str
    broker: str
    account: str
    steps: int
    most: int
    limits: Limits | None = None


def main() -> None:
    """Ask until there is no more input."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    endpoint = Endpoint(
        url=order.url,
        model="scripted",
        context=100_000,
        api="chat",
        thinks="no",
        omits=("stream",),
        account=order.account,
        limits=order.limits,
    )
    model = ServedModel(endpoint, "scripted", Chat(), SharedLimiter(order.broker))
    over = threading.Event()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(order.steps):
        threading.Thread(target=_ask, args=(model, order.most, over, random.Random(number)), daemon=True).start()
    sys.stdin.read()
    over.set()
    model.interrupt()


def _ask(model: ServedModel, most: int, over: threading.Event, chance: random.Random) -> None:
    """One step after another; one that is given back comes again with a sweep."""
    while not over.is_set():
        prompt = Prompt(turns=(user(WORDS * chance.randint(10, 60)),))
        while not over.is_set():
            try:
                model.generate(GenerationRequest(prompt, "end", most))
                break
            except Interrupted:
                return
            except BusyError as error:
                due = time.monotonic() + (error.seconds or 0)
                # All processes meet the same sweeps.
                time.sleep(max(0, due - time.monotonic() + SWEEP_SECONDS - due % SWEEP_SECONDS))


if __name__ == "__main__":
    main()
