"""Views of what runs recorded: traces, scores, exports and reports."""
