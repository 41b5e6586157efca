"""What the terminal shows: text, tables, JSON, bars and traces."""
