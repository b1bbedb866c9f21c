"""What an operator can mend is told in one line; a traceback is for what only we can."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from barnabas.node import NodeError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Ends the command with status 1 and the reason, where a node says why it cannot go on."""
    try:
        yield
    except NodeError as error:
        raise click.ClickException(str(error)) from None
