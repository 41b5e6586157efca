"""Settings from the environment, which every process reads."""
