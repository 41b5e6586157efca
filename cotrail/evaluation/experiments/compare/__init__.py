"""Free comparisons: any systems, models, datasets and retrievers, beside the published figures that they can fill."""
