"""Runs: submitted, forked, repeated, judged, steered, watched and removed; jobs, and the conduct of experiments.

A request (`requests`) becomes a run by `submission`, in four stages: it is read, `resolving` finds what it names (as
`configuring` describes it), `checking` refuses what is certain to be blocked, and `pinning` makes of it the run that is
stored, sealed with its plan. `labels` names it.
Other ways to a run are `forking`, `repeating`, `judging` and, for experiments (`experiments`), `conducting`.

A run is steered by `control`, is followed by `watching`, with its `progress` and `speed`, and event by event by
`following` (`live_hub`, `live_events`); `workers` carry it out. What it came to is read by `scores`. Work that
isn't a run's are `jobs`, each carried out by a process (`job_process`).
"""
