"""Raters: models that score pairs of texts, by whether they ask the same or how far one answers the other."""
