"""What `Reason` and `Read` steps have in common: a model continues their prompt."""

from cotrail.actions import Generated, Read, Reason
from cotrail.generation.generator import Sampling
from models.ledger import Claim
from tasks.station import Station


def generate(here: Station, claim: Claim) -> Generated:
    """Has the run's model continue the step's prompt."""
    action, binding = claim.action, claim.run.binding
    assert isinstance(action, Reason | Read)  # noqa: S101 - their queues hold nothing else
    sampling = Sampling(temperature=binding.temperature, seed=binding.seed)
    return here.generator(claim.run).generate(action.prompt, action.until, action.max_tokens, sampling)
