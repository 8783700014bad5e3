"""`hira-train demo`: a model of half a million parameters learns a recipe's task on a CPU, from random weights."""
