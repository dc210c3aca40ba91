"""What the shell may offer at the place where Tab was pressed."""
