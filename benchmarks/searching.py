"""How fast a search is, by one process or by several at the same time."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.stages import Report, memory

RETRIEVED = 15
"""How many paragraphs a query asks for: the most that the paper collects."""

WARM_UP = 2_000
"""So many queries has a server in Java behind it when it is as fast as it gets."""

REPORTED = 100
"""After how many queries each time it is told how many are done."""

Search = Callable[[str], object]
"""Finds the best paragraphs for a query, `RETRIEVED` of them."""


def warm_up(search: Search, asked: Sequence[str], seconds: float) -> None:
    """Searches for the first queries, but no longer than so, so that files are in memory and code is compiled."""
    end = time.perf_counter() + seconds
    for query in asked[:WARM_UP]:
        search(query)
        if time.perf_counter() > end:
            return


def searched(search: Search, asked: Sequence[str], seconds: float, report: Report) -> dict[str, Any]:
    """Searches so long with one thread, each query again when all were asked."""
    times: list[float] = []
    while sum(times) < seconds:
        started = time.perf_counter()
        search(asked[len(times) % len(asked)])
        times.append(time.perf_counter() - started)
        if len(times) % REPORTED == 0:
            report(min(len(times), len(asked)))
    times.sort()
    return {
        "load_average": round(os.getloadavg()[0], 1),
        "queries": len(times),
        "searching": sum(times),
        "median_ms": round(1000 * times[len(times) // 2], 2),
        "p95_ms": round(1000 * times[len(times) * 95 // 100], 2),
        "words_a_query": round(sum(len(query.split()) for query in asked) / len(asked), 1),
        "own_mib": memory("RssAnon"),
    }


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What one process found, or several at the same time: queries a second are added up."""
    rates = [part["queries"] / part["searching"] for part in parts]
    return {
        "queries_per_second": round(sum(rates), 1),
        **{
            key: max(part[key] for part in parts)
            for key in ("median_ms", "p95_ms", "words_a_query", "own_mib", "peak_mib", "load_average")
        },
    }
