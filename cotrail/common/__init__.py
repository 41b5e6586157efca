"""Helpers without domain knowledge: bounded reading of files, text for terminals and logs, addresses, secrets."""
