"""DBOS: a workflow per question, named by the question's number, so that it is enqueued once, however often asked."""

import json
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID

from benchmarks import workload
from benchmarks.contenders.dbos import POLLING_SECONDS, launched, question
from benchmarks.killed import AT_ONCE

QUEUE = "questions"


def main(count: int) -> None:
    """Enqueue the questions and wait for their answers; DBOS takes up by itself what a killed process left."""
    with launched("the-only-process"):
        DBOS.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=POLLING_SECONDS)
        handles = [_enqueued(number) for number in range(count)]
        answers = [handle.get_result() for handle in handles]
    print(json.dumps({"answered": answers.count(workload.ANSWER)}))


def _enqueued(number: int) -> Any:
    with SetWorkflowID(f"question-{number}"):
        return DBOS.enqueue_workflow(QUEUE, question, workload.question(number))


if __name__ == "__main__":
    main(int(sys.argv[1]))
