"""Clients of the service that public generators make of its description, and programs that use them."""
