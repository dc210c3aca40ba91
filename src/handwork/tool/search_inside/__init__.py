"""What search_files runs inside the sandbox: Python 3.9 and its standard library, nothing else."""
