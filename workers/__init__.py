"""The Celery app, its worker processes, the maintenance process, and the local stack that runs them."""

from cotrail.configuration.celery_variables import take_out

TAKEN_OUT = take_out()
"""Here, and so before any module of this package imports Celery, which reads some of the variables at once."""
