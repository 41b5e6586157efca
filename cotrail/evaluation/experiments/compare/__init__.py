"""Free comparisons: any systems, models, datasets and retrievers, next to the published figures that they can fill."""
