"""Pages and actions, a module for each screen."""
