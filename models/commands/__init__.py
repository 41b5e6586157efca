"""Commands of people on runs: submit, fork, pause, resume, retry, cancel, prune, annotate."""
