"""Servers and tools that several tests share."""
