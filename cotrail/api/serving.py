"""The application in a process of its own; importing it configures Celery, by which workers are asked and notified."""

from cotrail.api.app import Service
from cotrail.api.app import application as make_application
from cotrail.api.probes import name_requests
from cotrail.common.processes import collect_seldom
from cotrail.workers.celery_app import app as app


def application() -> Service:
    """The service, whose logs name requests."""
    name_requests()
    made = make_application()
    collect_seldom()
    return made
