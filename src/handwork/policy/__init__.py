"""May this call run: pure decisions over declared actions."""
