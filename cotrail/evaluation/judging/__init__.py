"""What judges' verdicts are worth: their agreement with one another, and with people."""
