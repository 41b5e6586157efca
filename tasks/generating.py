"""What `Reason` and `Read` steps have in common: a model continues their prompt."""

from msgspec.structs import replace

from cotrail.actions import Generated, Read, Reason, sampling
from models.ledger import Claim
from tasks.station import Station


def generate(here: Station, claim: Claim) -> Generated:
    """Has the run's model continue the step's prompt."""
    action = claim.action
    assert isinstance(action, Reason | Read)  # noqa: S101 - their queues hold nothing else
    drawn = sampling(action, claim.run.binding)
    generator, cancellation = here.generator(claim.run), here.cancellation(claim)
    written = generator.generate(action.prompt, action.until, action.max_tokens, drawn, cancellation)
    return written if drawn.sample is None else replace(written, seed=drawn.seed)
