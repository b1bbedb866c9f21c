"""Running a Connect worker in the foreground until stopped."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from barnabas import __version__
from barnabas.cli.child_output import echo_error
from barnabas.cli.local_ports import suggest_port
from barnabas.cli.operations.connect import ConnectClient, read_connector_file
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.local_processes import describe_taken_port
from barnabas.cli.signals import stop_event
from barnabas.client.compacted_topic import TopicError
from barnabas.connect.model import ForwardToLeaderError, RequestFailedError
from barnabas.connect.worker import RunningWorker, serve_worker
from barnabas.connect.worker_config import WorkerConfig, WorkerConfigError

STANDALONE_DEFAULTS: Mapping[str, str] = {
    "group.id": "connect-standalone",
    "config.storage.topic": "connect-standalone-configs",
    "offset.storage.topic": "connect-standalone-offsets",
    "status.storage.topic": "connect-standalone-status",
}
"""A standalone worker is a group of one instance, whose topics have names of their own."""

_ANY_HOST = ("", "0.0.0.0", "::")


def parse_worker_config(properties: Mapping[str, str], origin: str | None) -> WorkerConfig:
    """Raises one CommandError that names all problems."""
    from barnabas.spark.prerequisites import PrerequisiteError, require_all

    try:
        config = WorkerConfig.parse(properties)
        require_all()
    except WorkerConfigError as error:
        lines = [f"  {problem}" for problem in error.problems]
        subject = "the settings" if origin is None else origin
        raise CommandError("\n".join([f"{subject} cannot be used:", *lines])) from None
    except PrerequisiteError as error:
        raise CommandError(str(error)) from None
    return config


async def run_worker(
    config: WorkerConfig,
    connector_files: Sequence[Path],
    *,
    log: str,
    stop_with_stdin: bool = False,
) -> None:
    """Runs a worker until stopped. Raises CommandError if it cannot start."""
    stop = stop_event(lambda: os._exit(1), with_stdin=stop_with_stdin)
    connectors = [read_connector_file(file) for file in connector_files]
    stopping = asyncio.create_task(stop.wait())
    try:
        async with serve_worker(config) as worker:
            click.echo(_banner(config, worker, log))
            for note in config.notes:
                echo_error(f"Note: {note}.")
            work = asyncio.create_task(_create_and_wait(worker, connectors))
            await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                work.result()  # raises why it cannot start
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            echo_error("Stopping. Press Ctrl-C again to end at once.")
    except (TopicError, ImportError) as failure:
        raise CommandError(str(failure)) from None
    except WorkerConfigError as failure:
        raise CommandError("; ".join(failure.problems)) from None
    except OSError as failure:
        raise CommandError(_describe(failure, config)) from None
    finally:
        stopping.cancel()


async def _create_and_wait(
    worker: RunningWorker, connectors: Sequence[tuple[str, dict[str, str], str | None]]
) -> None:
    """Stores the settings of connectors. Never returns."""
    await asyncio.shield(worker.starting)
    for name, config, _ in connectors:
        click.echo(f"Connector {name}: {await _put_config(worker, name, config)}")
    await worker.failed()


async def _put_config(worker: RunningWorker, name: str, config: Mapping[str, str]) -> str:
    """Returns what has been done."""
    try:
        is_new, _ = await worker.herder.put_config(name, config, may_exist=True)
    except RequestFailedError as error:
        raise CommandError(f"Connector {name}: {error.message}") from None
    except ForwardToLeaderError as forward:
        if forward.leader_url is None:
            raise CommandError(f"Connector {name}: no worker of the group leads yet.") from None
        client = ConnectClient(forward.leader_url)
        await asyncio.to_thread(client.send, "PUT", "connectors", name, "config", body=config)
        return f"stored through {forward.leader_url}, which leads the group."
    return "created." if is_new else "its settings are replaced."


def _banner(config: WorkerConfig, worker: RunningWorker, log: str) -> str:
    topics = ", ".join((config.config_topic, config.offset_topic, config.status_topic))
    delivery = "exactly once" if config.exactly_once else "at least once"
    return "\n".join(
        [
            f"Barnabas {__version__}: Connect worker of group {config.group_id}.",
            f"  REST API  {worker.url}",
            f"  Brokers   {config.bootstrap_servers}",
            f"  Topics    {topics}",
            f"  Sources   write {delivery} (exactly.once.source.support)",
            f"  Spark     {config.spark.get('spark.master', 'in this process')}, starts now",
            f"  Log       {log}",
            "Press Ctrl-C to stop.",
        ]
    )


def _describe(failure: OSError, config: WorkerConfig) -> str:
    host, port = config.listener.host, config.listener.port
    shown = f"{host}:{port}" if host not in _ANY_HOST else f"port {port}"
    if failure.errno != errno.EADDRINUSE:
        return f"Cannot listen on {shown}: {failure.strerror or failure}."
    advice = f"choose another port: --port {suggest_port(host, port)}, or listeners in the file"
    return f"{describe_taken_port(host, port)}. Stop it, or {advice}."
