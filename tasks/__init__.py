"""The Celery tasks, one file an action kind, and the commit that chains them."""
