"""What is recorded of runs and read by all others: plans, histories, paragraphs, and rows as an auditor sees them."""
