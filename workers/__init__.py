"""The Celery app, its worker processes, the maintenance process, and the local stack that runs them."""

from cotrail.configuration.variables import CELERY, LIBPQ, take_out

take_out(CELERY, LIBPQ)  # before any module of this package imports Celery, which reads some of them at once
