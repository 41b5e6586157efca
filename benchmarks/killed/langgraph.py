"""LangGraph with its PostgreSQL checkpointer: a thread with a checkpoint is continued unless it has its answer."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks import workload
from benchmarks.contenders.langgraph import asked, checkpoints, graph
from benchmarks.killed import AT_ONCE


def main(count: int, durability: str) -> None:
    """Answer the questions in threads; durability: when checkpoints are written, LangGraph's own setting."""
    with checkpoints() as saver, ThreadPoolExecutor(AT_ONCE) as threads:
        saver.setup()
        compiled = graph(saver)

        def answer(number: int) -> str:
            thread = {"configurable": {"thread_id": str(number)}}
            state = compiled.get_state(thread)
            if not state.values.get("answer"):
                # Not by `state.next`, which is empty also between a step's writes and the checkpoint after them.
                begin = asked(number) if state.created_at is None else None
                compiled.invoke(begin, thread, durability=durability)
            return str(compiled.get_state(thread).values.get("answer"))

        answers = list(threads.map(answer, range(count)))
    print(json.dumps({"answered": answers.count(workload.ANSWER)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
