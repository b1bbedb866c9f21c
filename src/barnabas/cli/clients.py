"""What the subcommands that move records have in common: where to, with which settings."""

import functools
from collections.abc import Callable, Collection
from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.settings import client_settings
from barnabas.cli.options import CONNECT_TIMEOUT_S, bootstrap_server_option, command_config_option
from barnabas.cli.signals import exit_on_signal


def client_command(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the `settings` of its clients and a `display`; Ctrl-C ends it cleanly."""

    @bootstrap_server_option
    @command_config_option
    @click.option(
        "-X", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting of the client."
    )
    @click.option("--json", "as_json", is_flag=True, help="For programs: print JSON.")
    @functools.wraps(command)
    def run(
        servers: str,
        command_config: str | None,
        pairs: tuple[str, ...],
        as_json: bool,
        **options: Any,
    ) -> None:
        defaults = {"bootstrap.servers": servers, "client.id": "barnabas-cli"}
        settings = client_settings(command_config, pairs, defaults)
        with exit_on_signal():
            command(settings=settings, display=Display(as_json), **options)

    return run


def require_topic(client: Any, topic: str | None = None) -> Collection[int]:
    """The partitions of the topic; fails soon where nobody answers, or where there is no such."""
    from barnabas.client.errors import KafkaError, KafkaException

    metadata = client.list_topics(topic, timeout=CONNECT_TIMEOUT_S)
    if topic is None:
        return ()
    error = metadata.topics[topic].error
    if error == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise CommandError(f"There is no topic {topic}; `barnabas topics create {topic}` makes it.")
    if error is not None:
        raise KafkaException(error)
    partitions: Collection[int] = metadata.topics[topic].partitions
    return partitions
