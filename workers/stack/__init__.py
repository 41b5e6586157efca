"""The local stack: PostgreSQL, Redis, workers, the service and Flower as background processes of a person's machine."""
