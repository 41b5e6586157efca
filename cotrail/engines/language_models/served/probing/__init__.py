"""What a served model takes, found out by asking it: one small request of each kind, and a table that fits."""
