"""What there is to work with: corpora and knowledge, datasets, models, systems, files that are named or uploaded."""
