"""Language models: a port of one method, and an adapter an engine."""
