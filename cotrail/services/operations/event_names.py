"""The names of the events that end a stream, for servers and clients."""

END = "end"
"""Of the last event: nothing more will happen unless a person acts."""

PROBLEM = "problem"
"""Of the event that tells why a stream ends before its end; its data is a problem, and no event."""
