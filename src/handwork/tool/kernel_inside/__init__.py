"""What runs inside the sandbox for the Python kernel: plain files that need nothing of ours (never imported by us)."""
