"""Agents that call tools: one loop, the tools, the ways in which models call them, and a table of published agents."""
