"""`hira-train demo`: a model of half a million parameters learns two-hop questions on a CPU, from nothing."""
