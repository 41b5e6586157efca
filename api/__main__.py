"""`python -m cotrail.api`: the service in this process, until it is stopped."""

import uvicorn

from cotrail.configuration.settings import settings

# Importing it configures Celery, by which workers are asked and told.
from cotrail.workers.celery_app import app as app

if __name__ == "__main__":
    host, port = settings().api_host, settings().api_port
    uvicorn.run("cotrail.api.app:application", factory=True, host=host, port=port, server_header=False)
