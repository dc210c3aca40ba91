"""The model: one port, codecs, transport and wrappers."""
