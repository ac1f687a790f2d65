"""Where the command `harness` starts: loading the command line can be interrupted too.

Nothing is imported before the try, so a Ctrl-C in the first half second is a sentence
like any other.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Loads the command line and runs one command."""
    try:
        from flows.command_line import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. Nothing was started yet.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
