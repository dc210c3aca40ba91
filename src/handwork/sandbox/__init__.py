"""Where tools run: one protocol, several backends."""
