"""DBOS: one workflow per question, its own queue, each step's result in PostgreSQL."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

from dbos import DBOS
from sqlalchemy.engine import make_url

from benchmarks import workload
from benchmarks.contenders import KINDS
from benchmarks.contenders.shares import timed
from cotrail.configuration.settings import settings

POLLING_SECONDS = 0.1


@DBOS.step()
def retrieve(query: str) -> list[dict[str, object]]:
    """Finds paragraphs."""
    return [
        {"title": hit.paragraph.title, "text": hit.paragraph.text, "score": hit.score} for hit in workload.search(query)
    ]


@DBOS.step()
def reason(asked: str, position: int) -> str:
    """The next sentence."""
    return workload.sentence(asked, position)


@DBOS.step()
def read(asked: str) -> str:
    """The answer."""
    return workload.answer(asked)


@DBOS.workflow()
def question(text: str) -> str:
    """Run seven steps, each stored before the next."""
    sentences: list[str] = []
    query = text
    for kind in KINDS:
        if kind == "retrieve":
            retrieve(query)
        elif kind == "reason":
            sentences.append(reason(text, len(sentences)))
            query = sentences[-1]
    answer: str = read(text)
    return answer


def answer(share: range, together: Barrier) -> None:
    """Enqueue one workflow per question in a queue of this process alone, and wait until all have ended."""
    with launched(f"process-{share.start}"):
        queue = f"questions-{share.start}"
        DBOS.register_queue(queue, polling_interval_sec=POLLING_SECONDS)
        together.wait()
        handles = [DBOS.enqueue_workflow(queue, question, workload.question(n)) for n in share]
        for handle in handles:
            handle.get_result()
        together.wait()


@contextmanager
def launched(executor: str) -> Iterator[None]:
    """DBOS in this process, which first takes up what a process of that name left."""
    url = make_url(settings().database).set(drivername="postgresql").render_as_string(hide_password=False)
    DBOS(config={"name": "benchmark", "system_database_url": url, "log_level": "ERROR", "executor_id": executor})
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def main(count: int, processes: int) -> None:
    """Divide the questions among the processes."""
    with launched("migrations"):
        pass
    seconds = timed(answer, count, processes)
    print(json.dumps({"steps": count * len(KINDS), "seconds": seconds, "workers": f"{processes}, their own threads"}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
