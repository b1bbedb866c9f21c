"""Options and checks of the subcommands that run a producer or a consumer."""

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
    """Adds the options of a client; passes its `settings` and a `display`."""

    @bootstrap_server_option
    @command_config_option
    @click.option("-X", "pairs", multiple=True, metavar="NAME=VALUE", help="A client setting.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    """Returns the partitions of the topic.

    Raises an error within seconds if no broker responds or the topic does not exist.
    """
    from barnabas.client.errors import KafkaError, KafkaException

    metadata = client.list_topics(topic, timeout=CONNECT_TIMEOUT_S)
    if topic is None:
        return ()
    error = metadata.topics[topic].error
    if error == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise CommandError(
            f"Topic {topic} does not exist; create it with `barnabas topics create {topic}`."
        )
    if error is not None:
        raise KafkaException(error)
    partitions: Collection[int] = metadata.topics[topic].partitions
    return partitions
