"""Run a schema registry in the foreground, until told to stop."""

import asyncio
import contextlib
import os

import click

from barnabas import __version__
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.signals import stop_event
from barnabas.registry.service import serve_registry
from barnabas.registry.settings import RegistrySettings
from barnabas.registry.topic import TopicError


async def serve(settings: RegistrySettings, *, stop_with_stdin: bool) -> None:
    """Refused, in a line, where it cannot."""
    stop = stop_event(lambda: os._exit(1), with_stdin=stop_with_stdin)
    life = asyncio.create_task(_live(settings))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([life, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    life.cancel()  # wherever it is, in its start or serving: it ends what it has begun
    with contextlib.suppress(asyncio.CancelledError):
        await life


async def _live(settings: RegistrySettings) -> None:
    """Serve until cancelled."""
    try:
        async with serve_registry(settings) as url:
            click.echo(
                f"Barnabas {__version__}: a schema registry answers on {url}, with its schemas "
                f"in {settings.topic} of {settings.bootstrap_servers}. Stop it with Ctrl-C."
            )
            await asyncio.Event().wait()
    except (TopicError, ImportError) as failure:
        raise CommandError(str(failure)) from failure
    except OSError as failure:
        raise CommandError(
            f"Cannot listen on {settings.host}:{settings.port}: {failure.strerror}; stop what "
            "listens there, or choose another --port."
        ) from failure
