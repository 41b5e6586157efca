"""ProbTree: trees of questions whose answers are chosen by their probabilities."""
