"""Made-up cases, what the official evaluation scripts say of them, and how that was recorded."""
