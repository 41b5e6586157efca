"""The tables in PostgreSQL, their digests, and connections."""
