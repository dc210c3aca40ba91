"""The attacks of FAULTS.md: a model that obeys every injected word, real tools, a real sandbox, and what did not happen."""
