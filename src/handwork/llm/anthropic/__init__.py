"""Anthropic's Messages API: a Request as bytes, an answer as stream items."""
