"""The one loop, the planner, the coordinator, and the experts it gives subtasks to."""
