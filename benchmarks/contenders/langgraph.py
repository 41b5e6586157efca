"""LangGraph with its PostgreSQL checkpointer: one graph per question, one checkpoint per step."""

import json
import operator
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from typing import Annotated, Any, TypedDict, cast

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from sqlalchemy.engine import make_url

from benchmarks import workload
from benchmarks.contenders import KINDS
from benchmarks.contenders.shares import timed
from cotrail.configuration.settings import settings

THREADS = 8


class GraphState(TypedDict):
    """State of a question."""

    question: str
    paragraphs: Annotated[list[dict[str, object]], operator.add]
    sentences: Annotated[list[str], operator.add]
    answer: str


def retrieve(state: GraphState) -> dict[str, object]:
    """Search with the last sentence, at first with the question."""
    hits = workload.search([state["question"], *state["sentences"]][-1])
    return {"paragraphs": [{"title": hit.paragraph.title, "text": hit.paragraph.text} for hit in hits]}


def reason(state: GraphState) -> dict[str, object]:
    """The next sentence."""
    return {"sentences": [workload.sentence(state["question"], len(state["sentences"]))]}


def read(state: GraphState) -> dict[str, object]:
    """The answer."""
    return {"answer": workload.answer(state["question"])}


def _next(state: GraphState) -> str:
    return "read" if len(state["sentences"]) == len(workload.SENTENCES) else "retrieve"


def graph(saver: PostgresSaver) -> Any:
    """The graph that answers a question."""
    steps = StateGraph(GraphState)
    for node in (retrieve, reason, read):
        steps.add_node(node.__name__, node)
    steps.add_edge(START, "retrieve")
    steps.add_edge("retrieve", "reason")
    steps.add_conditional_edges("reason", _next, ["retrieve", "read"])
    steps.add_edge("read", END)
    return steps.compile(checkpointer=saver)


def asked(number: int) -> GraphState:
    """The state in which the question of that number begins."""
    return {"question": workload.question(number), "paragraphs": [], "sentences": [], "answer": ""}


def answer(share: range, together: Barrier) -> None:
    """Run one graph per question, each checkpoint written before the next step (`durability="sync"`)."""
    with checkpoints() as saver:
        compiled = graph(saver)

        def ask(number: int) -> None:
            compiled.invoke(asked(number), {"configurable": {"thread_id": str(number)}}, durability="sync")

        together.wait()
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(ask, share))
        together.wait()


@contextmanager
def checkpoints() -> Iterator[PostgresSaver]:
    """The checkpointer, for as many threads at once."""
    url = make_url(settings().database).set(drivername="postgresql").render_as_string(hide_password=False)
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=THREADS, max_size=THREADS, kwargs=options) as pool:
        yield PostgresSaver(cast(Any, pool))


def main(count: int, processes: int) -> None:
    """Divide the questions among the processes."""
    with checkpoints() as saver:
        saver.setup()
    seconds = timed(answer, count, processes)
    workers = f"{processes} of {THREADS} threads"
    print(json.dumps({"steps": count * len(KINDS), "seconds": seconds, "workers": workers}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
