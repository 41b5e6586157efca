"""Prompts: their template, the demonstrations in them, and how they are packed into a context."""
