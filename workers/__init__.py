"""The Celery app, its worker processes, the maintenance process, and the local stack that runs them."""
