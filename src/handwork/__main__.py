"""The program's entry: `--version` is answered before anything heavy is imported."""

import os
import sys

# `python -m` looks for modules in the current folder first, and that is the workspace: a pydantic_core.py there would run out
# here. Nothing may be imported before this that python has not loaded itself: not even __future__, which is a file, too.
if __name__ == "__main__" and __spec__ is not None and not sys.flags.safe_path:
    del sys.path[0]


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        try:
            os.write(
                1, f"handwork {_version()}\n".encode()
            )  # past the buffer: what stays in there would fail once more
            return 0
        except OSError:
            pass  # nothing came out: the command line writes it again, and says what is wrong
    try:
        if shell := os.environ.get("_HANDWORK_COMPLETE"):
            from handwork.cli.completion.answers import print_completions

            return print_completions(shell, sys.argv[1:])
        from handwork.cli.broken import missing_part, two_lines, unsupported_system

        if (told := unsupported_system(sys.platform)) and not {"--help", "-h", "--version", "-V"} & {*sys.argv[1:]}:
            print(two_lines(*told), file=sys.stderr)
            return 2
        try:
            from handwork.cli.app import run_command_line
        except ImportError as error:
            if (told := missing_part(error)) is None:
                raise
            print(two_lines(*told), file=sys.stderr)
            return 2
        return run_command_line(sys.argv[1:])
    except KeyboardInterrupt:  # Ctrl-C while modules load
        return 130


def _version() -> str:
    """The installed version by the name of its metadata folder; importlib.metadata alone would take longer than all else."""
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            continue  # not there, or a zip file
        for name in names:
            if name.startswith("handwork-") and name.endswith(".dist-info"):
                return name[len("handwork-") : -len(".dist-info")]
    from handwork import __version__

    return str(__version__)


if __name__ == "__main__":
    sys.exit(main())
