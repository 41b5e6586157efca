"""Reading runs: progress, traces, outages, annotations, experiments."""
