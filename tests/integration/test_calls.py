"""The calls of a run's language model, as the store gives them back."""

from sqlalchemy import Engine

from cotrail.core.results import Generated
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.model_calls import read_calls
from cotrail.models.queries.traces import read_question, rebuild_prompt
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, begin, run_to_end


def test_each_call_has_the_prompt_that_the_model_was_shown_and_what_it_wrote(engine: Engine) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    with engine.connect() as connection:
        found = dict(read_calls(connection, "costless", "reason"))
        assert list(found) == ["q0", "q1", "q2"]
        for key, calls in found.items():
            reasoned = [step for step in read_question(connection, "costless", key).steps if step.kind == "reason"]
            assert len(calls) == len(reasoned) > 1
            for call, step in zip(calls, reasoned, strict=True):
                assert call.prompt.render() == rebuild_prompt(connection, "costless", key, step.sequence)
                assert isinstance(step.result, Generated)
                assert call.written == step.result.raw


def test_steps_without_a_result_are_no_calls(engine: Engine) -> None:
    begin(engine, 1)
    with engine.connect() as connection:
        assert list(read_calls(connection, "costless", "reason")) == []
