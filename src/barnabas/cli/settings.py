"""`--set key=value` on the command line, for a node's settings."""

from collections.abc import Callable

import click

from barnabas.cli.work.refused import Refused
from barnabas.cli.work.settings import parse_pairs


def override(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--set key=value`, any number of times, as `overrides`."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse,
        help="A setting of server.properties; may be given many times.",
    )(command)


def _parse(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    try:
        return parse_pairs(pairs)
    except Refused as error:
        raise click.BadParameter(str(error)) from None
