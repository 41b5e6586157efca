"""Speed of a search, by one process or by several concurrent ones."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.stages import ReportProgress, memory

RETRIEVED = 15
"""Paragraphs per query: the most that the paper collects."""

WARM_UP = 2_000
"""Queries after which a Java server has reached its full speed."""

REPORTED = 100
"""Queries between two reports of progress."""

Search = Callable[[str], object]
"""Finds the best `RETRIEVED` paragraphs for a query."""


def warm_up(search: Search, asked: Sequence[str], seconds: float) -> None:
    """Search for the first queries, for `seconds` at most, so that files are cached and code is compiled."""
    end = time.perf_counter() + seconds
    for query in asked[:WARM_UP]:
        search(query)
        if time.perf_counter() > end:
            return


def searched(search: Search, asked: Sequence[str], seconds: float, report: ReportProgress) -> dict[str, Any]:
    """Search for `seconds` with one thread, starting over when all queries were used."""
    times: list[float] = []
    computed = time.process_time()
    while sum(times) < seconds:
        started = time.perf_counter()
        search(asked[len(times) % len(asked)])
        times.append(time.perf_counter() - started)
        if len(times) % REPORTED == 0:
            report(min(len(times), len(asked)))
    computed = time.process_time() - computed
    times.sort()
    return {
        "load_average": round(os.getloadavg()[0], 1),
        "queries": len(times),
        "searching": sum(times),
        "processor_ms": round(1000 * computed / len(times), 3),
        "median_ms": round(1000 * times[len(times) // 2], 2),
        "p95_ms": round(1000 * times[len(times) * 95 // 100], 2),
        "words_a_query": round(sum(len(query.split()) for query in asked) / len(asked), 1),
        "own_mib": memory("RssAnon"),
    }


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Combine the results of concurrent processes: rates are added, of latencies and memory the maximum counts."""
    rates = [part["queries"] / part["searching"] for part in parts]
    return {
        "queries_per_second": round(sum(rates), 1),
        **{
            key: max(part[key] for part in parts)
            for key in ("processor_ms", "median_ms", "p95_ms", "words_a_query", "own_mib", "peak_mib", "load_average")
        },
    }
