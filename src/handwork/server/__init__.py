"""Our tools and agents for others: an MCP server."""
