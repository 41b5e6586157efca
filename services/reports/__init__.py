"""What runs and experiments come to, as tables, figures and pages."""
