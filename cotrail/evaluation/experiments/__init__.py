"""Experiments: plans of many runs, and tables and charts of their results; a folder for each paper."""
