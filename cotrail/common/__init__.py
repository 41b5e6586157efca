"""Helpers without domain knowledge: bounded reading of files, text for terminals, addresses, optional packages."""
