"""Reports of runs and experiments: tables, figures and pages."""
