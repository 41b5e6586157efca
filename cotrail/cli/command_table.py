"""The commands of `cotrail`, and where each one is; `cotrail --help` has the first paragraphs of their docstrings."""

from msgspec import Struct

STACK, WORK, LISTS, RESULTS = "The local stack", "Work", "What there is", "Results"
"""The panels of `cotrail --help`."""

PROCESSES = "it is about this machine's own processes"
DATABASE = "it connects to the database itself"
FILES = "it reads and writes this machine's own files"
"""Why commands work on this machine alone."""


class Entry(Struct, frozen=True):
    """A command, or a group of commands."""

    panel: str

    name: str

    place: str
    """Its module, and its function or group in there, whose docstring or help has its line in the list."""

    negative_numbers: bool = False
    """Whether an argument may begin with a dash."""

    here: str = ""
    """Why a server can't carry it out (`cotrail --server`); empty where one can."""


COMMANDS = (
    Entry(STACK, "up", "stack:up", here=PROCESSES),
    Entry(STACK, "down", "stack:down", here=PROCESSES),
    Entry(STACK, "stack", "stack:stack", here=PROCESSES),
    Entry(STACK, "logs", "operating:logs", here=PROCESSES),
    Entry(STACK, "worker", "stack:worker", here=PROCESSES),
    Entry(STACK, "workers", "stack:workers"),
    Entry(STACK, "doctor", "operating:doctor"),
    Entry(STACK, "migrate", "operating:migrate", here=DATABASE),
    Entry(STACK, "serve", "stack:serve", here=PROCESSES),
    Entry(STACK, "serve-corpus", "serve_corpus:serve_corpus", here=PROCESSES),
    Entry(STACK, "flower", "stack:flower", here=PROCESSES),
    Entry(STACK, "token", "access:token"),
    Entry(STACK, "project", "access:project"),
    Entry(STACK, "start", "start:start", here=PROCESSES),
    Entry(STACK, "demo", "demo:demo", here=PROCESSES),
    Entry(STACK, "view", "results:view"),
    Entry(STACK, "sample", "sample:sample", here=FILES),
    Entry(WORK, "index", "corpora:index"),
    Entry(WORK, "search", "corpora:search"),
    Entry(WORK, "submit", "submit:submit"),
    Entry(WORK, "ask", "submit:ask"),
    Entry(WORK, "fork", "fork:fork"),
    Entry(WORK, "judge", "judge:judge"),
    Entry(WORK, "repeat", "fork:repeat"),
    Entry(WORK, "watch", "control:watch"),
    Entry(WORK, "pause", "control:pause"),
    Entry(WORK, "resume", "control:resume"),
    Entry(WORK, "retry", "control:retry"),
    Entry(WORK, "prioritize", "control:prioritize", negative_numbers=True),
    Entry(WORK, "budget", "control:budget"),
    Entry(WORK, "cancel", "control:cancel"),
    Entry(WORK, "prune", "control:prune_runs"),
    Entry(WORK, "data", "data:data", here=FILES),
    Entry(WORK, "demonstrations", "demonstrations:demonstrations", here=FILES),
    Entry(WORK, "knowledge", "knowledge:knowledge"),
    Entry(WORK, "experiment", "experiment:experiment"),
    Entry(LISTS, "jobs", "operating:jobs"),
    Entry(LISTS, "systems", "models:systems"),
    Entry(LISTS, "models", "models:models"),
    Entry(LISTS, "corpora", "corpora:corpora"),
    Entry(LISTS, "datasets", "data:datasets"),
    Entry(RESULTS, "runs", "show:runs"),
    Entry(RESULTS, "label", "annotate:label"),
    Entry(RESULTS, "show", "show:show"),
    Entry(RESULTS, "plan", "score:plan"),
    Entry(RESULTS, "trace", "results:trace"),
    Entry(RESULTS, "replay", "fork:replay"),
    Entry(RESULTS, "score", "score:score"),
    Entry(RESULTS, "compare", "compare:compare"),
    Entry(RESULTS, "errors", "errors:errors"),
    Entry(RESULTS, "verdicts", "judge:verdicts"),
    Entry(RESULTS, "rethink", "rethink:rethink", here=FILES),
    Entry(RESULTS, "rethinking", "rethink:rethinking"),
    Entry(RESULTS, "annotate", "annotate:annotate"),
    Entry(RESULTS, "export", "results:export"),
    Entry(RESULTS, "report", "results:report"),
    Entry(RESULTS, "sql", "operating:sql", here=DATABASE),
    Entry(RESULTS, "audit", "audit:audit"),
)
