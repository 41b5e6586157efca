"""The Celery app and the processes that run it."""
