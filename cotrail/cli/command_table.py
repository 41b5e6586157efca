"""The commands of `cotrail`: where each one is, and its line in `cotrail --help`."""

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
    """Its module, and its function or group in there; imported only when the command is called."""

    summary: str
    """The first paragraph of its docstring, repeated here so that `cotrail --help` imports no command."""

    negative_numbers: bool = False
    """Whether an argument may begin with a dash."""

    here: str = ""
    """Why a server can't carry it out (`cotrail --server`); empty where one can."""


COMMANDS = (
    Entry(
        STACK,
        "up",
        "stack:up",
        "Start PostgreSQL, Redis, the workers and the service on this machine: what isn't running.",
        here=PROCESSES,
    ),
    Entry(
        STACK,
        "down",
        "stack:down",
        "Stop everything that `cotrail up` started. Runs continue after the next `cotrail up`.",
        here=PROCESSES,
    ),
    Entry(STACK, "stack", "stack:stack", "Show the processes of the local stack.", here=PROCESSES),
    Entry(STACK, "logs", "operating:logs", "Print the end of the log of a process of the local stack.", here=PROCESSES),
    Entry(
        STACK,
        "worker",
        "stack:worker",
        "Run a worker in this process until it is stopped, on this or any other host.",
        here=PROCESSES,
    ),
    Entry(
        STACK,
        "workers",
        "stack:workers",
        "List the workers of all hosts, and what each is doing; maintenance processes too.",
    ),
    Entry(
        STACK,
        "doctor",
        "operating:doctor",
        "Look whether this host, PostgreSQL, Redis, the search server, models and workers are as they have to be.",
    ),
    Entry(
        STACK,
        "migrate",
        "operating:migrate",
        "Bring the database's tables up to date: before the first start on a server of your own, and at each upgrade.",
        here=DATABASE,
    ),
    Entry(
        STACK, "serve", "stack:serve", "Run the service over HTTP in this process until it is stopped.", here=PROCESSES
    ),
    Entry(
        STACK,
        "flower",
        "stack:flower",
        "Run Flower in this process until it is stopped: a web page on what Celery's workers do.",
        here=PROCESSES,
    ),
    Entry(STACK, "token", "access:token", "Make, list and revoke tokens of the service."),
    Entry(STACK, "project", "access:project", "Make, list and change projects of the service."),
    Entry(
        STACK,
        "start",
        "start:start",
        "Try three systems on your own documents and questions, and say which is better and how sure that is.",
        here=PROCESSES,
    ),
    Entry(
        STACK,
        "demo",
        "demo:demo",
        "Show everything on the bundled sample: start the stack, index, ask, score, write a report, stop the stack.",
        here=PROCESSES,
    ),
    Entry(
        STACK,
        "view",
        "results:view",
        "Open the viewer in the browser: the list of runs, a run, or a question of it.",
    ),
    Entry(
        STACK,
        "sample",
        "sample:sample",
        "Write the bundled sample into a folder, as files to start from: corpus, questions, demonstrations, run file.",
        here=FILES,
    ),
    Entry(
        WORK,
        "index",
        "corpora:index",
        "Index paragraphs as a corpus; one of that name is replaced once the new one is complete.",
    ),
    Entry(WORK, "submit", "submit:submit", "Submit a run to the queue and print its id."),
    Entry(WORK, "ask", "submit:ask", "Answer one question while you watch, ahead of all that is queued."),
    Entry(
        WORK,
        "fork",
        "fork:fork",
        "Start a new run that takes over recorded steps of another one and computes only what follows.",
    ),
    Entry(
        WORK,
        "judge",
        "judge:judge",
        "Have language models grade the answers of a run that has ended, by a rubric.",
    ),
    Entry(
        WORK,
        "repeat",
        "fork:repeat",
        "Carry out some steps of a run again, in a run of their own, and print how many come out otherwise.",
    ),
    Entry(
        WORK,
        "watch",
        "control:watch",
        "Show a run's progress until it ends or can't continue by itself, and why. Ctrl-C ends only the watching.",
    ),
    Entry(
        WORK,
        "pause",
        "control:pause",
        "Pause a run: no further step begins; steps under way finish and are recorded.",
    ),
    Entry(WORK, "resume", "control:resume", "Continue a paused run, and try its blocked questions again."),
    Entry(
        WORK,
        "retry",
        "control:retry",
        "Try a run's failed and blocked questions again, from the step that they stopped at.",
    ),
    Entry(
        WORK,
        "prioritize",
        "control:prioritize",
        "Have a run's questions begun before those of runs with a lower number.",
        negative_numbers=True,
    ),
    Entry(
        WORK,
        "budget",
        "control:budget",
        "Give a run larger limits than it has; the questions that the former ones ended go on from where they were.",
    ),
    Entry(WORK, "cancel", "control:cancel", "End a run permanently; its record stays."),
    Entry(
        WORK,
        "prune",
        "control:prune_runs",
        "Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.",
    ),
    Entry(
        WORK,
        "data",
        "data:data",
        "Build the datasets' corpora from their published files, and draw questions.",
        here=FILES,
    ),
    Entry(
        WORK,
        "demonstrations",
        "demonstrations:demonstrations",
        "Build demonstrations from questions or a run.",
        here=FILES,
    ),
    Entry(
        WORK,
        "knowledge",
        "knowledge:knowledge",
        "Build and query the knowledge sources of Rethinking with Retrieval.",
    ),
    Entry(
        WORK,
        "experiment",
        "experiment:experiment",
        "Run a paper's protocol from one file, and report its tables and figures.",
    ),
    Entry(LISTS, "jobs", "operating:jobs", "List the jobs of a server, show one, or cancel one."),
    Entry(
        LISTS,
        "systems",
        "models:systems",
        "List the systems; of one, all settings with their defaults and meanings.",
    ),
    Entry(
        LISTS,
        "models",
        "models:models",
        "List the models, built-in ones and those of models.toml; of one, its settings and what it can do.",
    ),
    Entry(
        LISTS,
        "corpora",
        "corpora:corpora",
        "List the indexed corpora, show one, or remove one permanently (`cotrail corpora remove NAME`).",
    ),
    Entry(
        LISTS,
        "datasets",
        "data:datasets",
        "List the datasets; of one, its files, where to get them, its metric and its corpus.",
    ),
    Entry(RESULTS, "runs", "show:runs", "List runs, the newest first."),
    Entry(
        RESULTS,
        "label",
        "annotate:label",
        "Name and tag a run, or print its name and tags. No digest covers them: they may change at any time.",
    ),
    Entry(
        RESULTS,
        "show",
        "show:show",
        "Show a run: its configuration, where its questions and steps stand, and what went wrong.",
    ),
    Entry(
        RESULTS,
        "plan",
        "score:plan",
        "Show a run's plan, sealed before its first step, and where the run departed from it.",
    ),
    Entry(
        RESULTS,
        "trace",
        "results:trace",
        "Show how a question was answered: each search with what it found, each sentence, and the answer.",
    ),
    Entry(
        RESULTS,
        "replay",
        "fork:replay",
        "Run the system's code over a run's recorded steps, and report where it diverges.",
    ),
    Entry(
        RESULTS,
        "score",
        "score:score",
        "Print a run's main scores with 95 % confidence intervals, in percent; --json has them as shares of 1.",
    ),
    Entry(
        RESULTS,
        "compare",
        "compare:compare",
        "Say which of several runs on the same questions is better, by how much, how sure that is, where and why.",
    ),
    Entry(
        RESULTS,
        "errors",
        "errors:errors",
        "Say why a run's wrong answers are wrong, by rules over what is recorded.",
    ),
    Entry(
        RESULTS,
        "verdicts",
        "judge:verdicts",
        "Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.",
    ),
    Entry(
        RESULTS,
        "rethink",
        "rethink:rethink",
        "Infer final predictions from recorded chains and their scores, without a model.",
        here=FILES,
    ),
    Entry(
        RESULTS,
        "rethinking",
        "rethink:rethinking",
        "Compare runs of `rethinking` and its baselines with one another and with what the paper reports.",
    ),
    Entry(
        RESULTS,
        "annotate",
        "annotate:annotate",
        "Mark which sentences of a run's chains of thought aren't true, or label why its answers are wrong.",
    ),
    Entry(
        RESULTS,
        "export",
        "results:export",
        "Write a run's answers, and the chains and paragraphs behind them.",
    ),
    Entry(
        RESULTS,
        "report",
        "results:report",
        "Write a run as one HTML file: configuration, scores, and the reasoning behind every answer.",
    ),
    Entry(
        RESULTS,
        "sql",
        "operating:sql",
        "Open the database in psql, for reading only; docs/store.md describes the tables.",
        here=DATABASE,
    ),
    Entry(
        RESULTS,
        "audit",
        "audit:audit",
        "Verify a run's record, export it, and show the exact prompts.",
    ),
)
