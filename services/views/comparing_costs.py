"""What compared runs cost."""

from sqlalchemy import Connection

from cotrail.services.views.compared_costs import RunCosts
from cotrail.services.views.reports.costs import run_cost


def read_costs(connection: Connection, run_id: str) -> RunCosts:
    """The costs of a run so far."""
    cost = run_cost(connection, run_id)
    asked, dollars = cost.asked, cost.spent.dollars
    is_known = dollars is not None and not cost.spent.unpriced and not cost.adopted.steps
    return RunCosts(
        calls=asked.model_calls,
        searches=asked.searches,
        prompt_tokens=asked.prompt_tokens,
        generated_tokens=asked.generated_tokens,
        seconds=asked.seconds,
        dollars=float(dollars) if dollars is not None and is_known else None,
    )
