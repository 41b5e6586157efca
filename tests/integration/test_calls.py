"""The calls of a run's language model, as the store gives them back."""

from sqlalchemy import Engine

from cotrail.core.actions.generate import REASON
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.traces import read_questions, rebuild_prompt
from cotrail.services.runs.conducting import recorded_run
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, begin, run_to_end


def test_each_call_has_the_prompt_that_the_model_was_shown_and_what_it_wrote(engine: Engine) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    with engine.connect() as connection:
        calls = dict(recorded_run(connection, "costless").calls(REASON.name))
        assert len(calls) == 3
        for question in read_questions(connection, "costless"):
            steps = [step for step in question.steps if step.kind == REASON.name]
            assert len(steps) > 1
            for step, call in zip(steps, calls[question.key], strict=True):
                prompt = rebuild_prompt(connection, "costless", question.key, step.sequence)
                assert call.prompt.render() == prompt
                assert call.written


def test_steps_without_a_result_are_no_calls(engine: Engine) -> None:
    begin(engine, 1)
    with engine.connect() as connection:
        assert list(recorded_run(connection, "costless").calls(REASON.name)) == []
