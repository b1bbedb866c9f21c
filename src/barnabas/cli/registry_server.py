"""Running a schema registry in the foreground until stopped."""

import asyncio
import contextlib
import errno
import os

import click

from barnabas import __version__
from barnabas.cli.local_ports import suggest_port
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.local_processes import describe_taken_port
from barnabas.cli.operations.settings import read_properties
from barnabas.cli.signals import stop_event
from barnabas.client.compacted_topic import TopicError
from barnabas.registry.listener_settings import RegistryConfigError, RegistryListener
from barnabas.registry.service import serve_registry
from barnabas.registry.settings import RegistrySettings


def read_listener(file: str | None) -> RegistryListener:
    """Returns the settings of the listener of a file. Raises CommandError."""
    if file is None:
        return RegistryListener()
    try:
        return RegistryListener.from_properties(read_properties(file))
    except RegistryConfigError as error:
        raise CommandError(f"{file} cannot be used: {error}.") from None


async def serve(settings: RegistrySettings, *, stop_with_stdin: bool) -> None:
    """Runs a registry until stopped. Raises CommandError if it cannot start."""
    stop = stop_event(lambda: os._exit(1), with_stdin=stop_with_stdin)
    server = asyncio.create_task(_serve(settings))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([server, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    server.cancel()  # whether it starts or serves, it cleans up
    with contextlib.suppress(asyncio.CancelledError):
        await server


async def _serve(settings: RegistrySettings) -> None:
    """Serves until cancelled."""
    try:
        async with serve_registry(settings) as url:
            click.echo(
                f"Barnabas {__version__}: schema registry on {url}, with its schemas in topic "
                f"{settings.topic} of {settings.bootstrap_servers}. Press Ctrl-C to stop."
            )
            await asyncio.Event().wait()
    except RegistryConfigError as failure:
        raise CommandError(f"{failure}.") from failure
    except (TopicError, ImportError) as failure:
        raise CommandError(str(failure)) from failure
    except OSError as failure:
        raise CommandError(_describe(failure, settings)) from failure


def _describe(failure: OSError, settings: RegistrySettings) -> str:
    host, port = settings.host, settings.port
    if failure.errno != errno.EADDRINUSE:
        return f"Cannot listen on {host}:{port}: {failure.strerror}."
    advice = f"choose another port: --port {suggest_port(host, port)}"
    return f"{describe_taken_port(host, port)}. Stop it, or {advice}"
