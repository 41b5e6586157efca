"""Jobs: queued work that isn't a run's, as a request for it, and as a process that carries it out."""
