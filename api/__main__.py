"""`python -m cotrail.api`: the service in this process, until it is stopped."""

import uvicorn

# Importing it configures Celery, by which workers are asked and told.
from cotrail.workers.celery_app import app as app

if __name__ == "__main__":
    uvicorn.run("cotrail.api.app:application", factory=True, host="127.0.0.1", port=8420, server_header=False)
