"""Agents: the loop, and one file a role."""
