"""Handwork: a general-purpose AI agent (the public names)."""
