"""Causes of wrong answers, by rules over what is recorded (docs/error-analysis.md)."""
