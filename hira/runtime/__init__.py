"""What a question needs around its workflow: settings, endpoints, the session, batches, and what reads the journal."""
