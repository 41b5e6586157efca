"""What the command line and the API both do: submitting, forking, scoring, experiments and reports."""
