"""`hira-train demo`: a model of half a million parameters learns, on a CPU and from nothing, to answer two-hop questions."""
