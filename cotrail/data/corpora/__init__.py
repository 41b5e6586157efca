"""Building of corpora as the IRCoT paper describes, and reading of corpus files."""
