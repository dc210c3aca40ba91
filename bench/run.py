"""`make bench`: with the shared harness where it lies beside the repository, else with the built-in, smaller one.

`make bench ARGS="pydantic_ai langgraph"` takes further peers of the harness along; `ARGS=--builtin` keeps to the built-in.
"""

from __future__ import annotations

import sys

import builtin
import shared
from aims import table

if __name__ == "__main__":
    peers = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    with_harness = shared.HARNESS.is_dir() and "--builtin" not in sys.argv
    print(
        f"Measuring with the {'shared harness' if with_harness else 'built-in benchmark'}; the journal is on.",
        file=sys.stderr,
    )
    figures = shared.run(peers) if with_harness else builtin.run()
    print("\nHandwork beside its aims\n")
    print(table(figures))
