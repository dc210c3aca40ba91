"""What an agent can do: the tool's contract, the collection, and one file a tool."""
