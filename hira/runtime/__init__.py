"""Everything around a question's workflow: settings, endpoints, the session, batches, and readings of the journal."""
