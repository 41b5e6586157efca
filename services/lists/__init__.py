"""Lists of what there is: runs, systems, models, datasets, corpora, workers."""
