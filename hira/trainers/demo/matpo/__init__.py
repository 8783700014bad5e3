"""MATPO: half a million parameters learn two-hop questions over documents, as planner and as worker."""
