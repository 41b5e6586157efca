"""Who asks, in the name of which project, and what that allows."""
