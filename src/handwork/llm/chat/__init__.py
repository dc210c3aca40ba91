"""OpenAI's chat completions, and what providers make of them: a Request as bytes, an answer as stream items."""
