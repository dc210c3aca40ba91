"""`handwork mcp`: servers are listed, added, tried, approved and served."""
