"""Retrievers: a port of one method, and an adapter a search engine."""
