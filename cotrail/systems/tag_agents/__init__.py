"""Agents that search by tags in one long message: one loop, and a table of published agents."""
