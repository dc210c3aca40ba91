"""The program that runs inside a sandbox: standard library only, no import of handwork, so that any python3 there can run it."""
