"""The Celery tasks, one for each kind of action: claim, execute, commit, send what follows."""
