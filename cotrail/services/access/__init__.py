"""Who asks for what: tokens, projects and what was asked for in them, what they may use, and people who sign in."""
