"""MarsRL: half a million parameters learn to solve, to verify and to correct sums of weekdays."""
