"""The calls of a run's language model, as the store gives them back."""

from sqlalchemy import Engine

from cotrail.core.actions.generate import Reason
from cotrail.core.results import Generated
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.traces import read_questions, rebuild_prompt
from cotrail.services.reports.searchain_results import _words
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, begin, run_to_end


def test_each_call_has_the_prompt_that_the_model_was_shown_and_what_it_wrote(engine: Engine) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    with engine.connect() as connection:
        for question in read_questions(connection, "costless"):
            calls = [step for step in question.steps if isinstance(step.action, Reason)]
            assert len(calls) > 1
            written = 0
            for step in calls:
                assert isinstance(step.action, Reason)
                assert isinstance(step.result, Generated)
                prompt = rebuild_prompt(connection, "costless", question.key, step.sequence)
                assert step.action.prompt.render() == prompt
                written += len(step.result.raw.split())
            words = _words(question)
            assert words is not None
            assert words.written == written > 0


def test_steps_without_a_result_are_no_calls(engine: Engine) -> None:
    begin(engine, 1)
    with engine.connect() as connection:
        [question] = read_questions(connection, "costless")
    assert question.steps
    assert _words(question) is None
