"""The two agents of MATPO: a planner that hands out subtasks, and workers that search and read for it."""
