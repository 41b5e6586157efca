"""DBOS: a workflow a question, its own queue, every step's result in PostgreSQL."""

import json
import sys
import time

from dbos import DBOS
from sqlalchemy.engine import make_url

from benchmarks.contenders import KINDS
from benchmarks.costless import HITS, SENTENCES
from tasks.settings import settings

QUEUE = "questions"
POLLING_SECONDS = 0.1


@DBOS.step()
def retrieve(query: str) -> list[dict[str, object]]:
    """Finds the same paragraphs for every query."""
    return (
        [{"title": hit.paragraph.title, "text": hit.paragraph.text, "score": hit.score} for hit in HITS]
        if query
        else []
    )


@DBOS.step()
def reason(position: int) -> str:
    """The next sentence."""
    return SENTENCES[position]


@DBOS.step()
def read() -> str:
    """The answer."""
    return "Grayle"


@DBOS.workflow()
def question(text: str) -> str:
    """Seven steps, each stored before the next."""
    sentences: list[str] = []
    query = text
    for kind in KINDS:
        if kind == "retrieve":
            retrieve(query)
        elif kind == "reason":
            sentences.append(reason(len(sentences)))
            query = sentences[-1]
    answer: str = read()
    return answer


def main(count: int) -> None:
    """Enqueues a workflow a question and waits for the last one's end."""
    url = make_url(settings().database).set(drivername="postgresql").render_as_string(hide_password=False)
    DBOS(config={"name": "benchmark", "system_database_url": url, "log_level": "ERROR"})
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLLING_SECONDS)
    began = time.monotonic()
    handles = [DBOS.enqueue_workflow(QUEUE, question, f"Where was builder {n} born?") for n in range(count)]
    for handle in handles:
        handle.get_result()
    seconds = time.monotonic() - began
    DBOS.destroy()
    print(json.dumps({"steps": count * len(KINDS), "seconds": seconds, "workers": "1 process, its own threads"}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
