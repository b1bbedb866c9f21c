"""The standard error of a child process, echoed to this process's with a prefix."""

import asyncio
from contextlib import suppress

import click


async def echo_lines(prefix: str, lines: asyncio.StreamReader) -> None:
    """Echoes until the end of the stream."""
    while not lines.at_eof():
        with suppress(ValueError):  # a line longer than the buffer is skipped
            if line := await lines.readline():
                echo_error(f"{prefix} | {line.decode(errors='replace').rstrip()}")


def echo_error(line: str) -> None:
    """Prints a line to standard error; the terminal may be closed by now."""
    with suppress(OSError):
        click.echo(line, err=True)
