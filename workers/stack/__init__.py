"""The local stack: PostgreSQL, Redis, the workers and Flower as background processes of one person's machine."""
