"""Taking back what a step changed in the workspace, from a copy outside of it."""
