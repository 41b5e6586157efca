"""What happens to runs, told to those who follow them while it happens."""
