"""Whether a workspace may configure Handwork: the question, its words, and `handwork trust`."""
