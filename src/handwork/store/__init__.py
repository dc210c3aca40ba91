"""The journal: where a session's events and pictures are kept."""
