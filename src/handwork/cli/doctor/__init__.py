"""`handwork doctor`: one file a subject; each finding says what it means and what to do."""
