"""Settings, endpoints, the session, batches, and readings of the journal."""
