"""What a person does to runs: submit, fork, pause, resume, retry, cancel, prune."""
