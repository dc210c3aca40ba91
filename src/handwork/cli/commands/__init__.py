"""The commands and their options, one file a subject; each hands over to a module of cli."""
