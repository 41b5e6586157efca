"""Data that is built: demonstrations and samples of questions."""
