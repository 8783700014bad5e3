"""The demo of the recipe `rubric`: a model of half a million parameters learns to write rubrics, on a CPU, from
nothing."""
