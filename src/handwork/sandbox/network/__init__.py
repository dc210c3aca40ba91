"""The allow-list network of a sandbox: a proxy in our own process that asks before it connects."""
