"""Calls that a model writes as text instead of calling."""
