"""Records that execution, commands and queries share: run plans, histories, contents, steps, and the audit trail."""
