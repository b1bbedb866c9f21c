"""`--host` and `--port`, of commands that listen until they are stopped."""

from collections.abc import Callable

import click

Command = Callable[..., None]


def listens(port: int, *, highest: int = 65535, whose: str) -> Callable[[Command], Command]:
    """Tell a command `host` and `port`; `whose` is who connects there."""

    def with_options(command: Command) -> Command:
        command = click.option(
            "--host",
            default="localhost",
            show_default=True,
            help=f"The name or address to listen on, and where {whose} find it.",
        )(command)
        return click.option(
            "--port",
            default=port,
            show_default=True,
            type=click.IntRange(0, highest),
            help=f"The port {whose} connect to; 0 for any that is free.",
        )(command)

    return with_options
