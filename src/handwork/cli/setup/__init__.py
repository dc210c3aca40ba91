"""`handwork setup`: the conversation that ends with a model that works."""
