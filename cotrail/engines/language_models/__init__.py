"""Language models: an adapter for each engine, and what they share."""
