"""The application in a process of its own; importing it configures Celery, by which workers are asked and told."""

from cotrail.api.app import application as application
from cotrail.workers.celery_app import app as app
