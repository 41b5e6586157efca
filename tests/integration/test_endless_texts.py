"""A server that writes a text without end: the step is recorded, and the question continues."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.generation import Until
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.results import Generated, Retrieved
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.systems.registry import find_system
from tests.integration.served import Served, piece, streamed
from tests.integration.stepping import LEASE, ask, close_runs, unsent


@pytest.mark.parametrize("written", ["1" * 6_000, "1" * 100_000, "1," * 50_000, "1 + " * 25_000, "“" * 100_000])
def test_a_text_that_repeats_itself_is_recorded_and_the_question_continues(
    engine: Engine, open_served: Callable[..., LanguageModel], served: Served, written: str
) -> None:
    size = max(1, len(written) // 1_000)
    pieces = [written[start : start + size] for start in range(0, len(written), size)]
    served.replies = [streamed([*(piece(each) for each in pieces), piece("", "length"), "[DONE]"])]
    model = open_served(served.url, context=100_000_000)

    def outcome(claim: Claim) -> Generated | Retrieved:
        action = claim.action
        if not isinstance(action, Reason | Read):
            return Retrieved(hits=())
        until: Until = "sentence" if isinstance(action, Reason) else "line"
        return model.generate(GenerationRequest(action.prompt, until, 24))

    submit(engine, submission(), ask(1), find_system)
    ledger = Ledger(engine, "worker", LEASE, find_system)
    messages: list[Dispatch] = list(unsent(engine))
    steps = 0
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [Completion(claim=each, outcome=outcome(each), milliseconds=1) for each in claims]
        messages = [message for following in ledger.commit(done) for message in following]
        steps += len(done)
    assert steps > 2
    assert len(close_runs(engine)) == 1
