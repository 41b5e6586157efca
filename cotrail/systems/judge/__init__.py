"""Grading of answers by a language model, by a rubric."""
