"""What `Reason` and `Read` steps have in common: a model continues their prompt."""

from msgspec.structs import replace

from cotrail.core.actions.prompted import sampling
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.generation import RULES
from cotrail.core.results import Generated
from cotrail.engines.language_models.splitting import Pipeline, open_pipeline
from models.execution.claims import Claim
from tasks.station import Station


def generate(here: Station, claim: Claim) -> Generated:
    """Has the run's model continue the step's prompt."""
    action = claim.action
    assert isinstance(action, Reason | Read)  # noqa: S101 - their queues hold nothing else
    drawn = sampling(action, claim.run.binding)
    pipeline = _pipeline(action)
    until = "line" if pipeline else action.until
    generator, cancellation = here.generator(claim.run), here.cancellation(claim)
    written = generator.generate(action.prompt, until, action.max_tokens, drawn, cancellation)
    if pipeline:
        written = replace(written, text=pipeline.first_sentence(written.text))
    return written if drawn.sample is None else replace(written, seed=drawn.seed)


def _pipeline(action: Reason | Read) -> Pipeline | None:
    """What tells where the action's sentence ends; None where the model's engine does."""
    if isinstance(action, Reason) and action.until == "sentence" and action.splitter != RULES:
        return open_pipeline(action.splitter)
    return None
