"""The conversation at the terminal: what is typed, what is shown, and /undo."""
