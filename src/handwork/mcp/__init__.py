"""A server's tools as ours: connections to MCP servers, what they offer, and what may be believed of it."""
