"""Sandboxes whose supervisor runs elsewhere: in a container, or on a remote machine."""
