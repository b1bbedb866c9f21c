"""`barnabas registry`: a schema registry with Confluent's REST API."""

from pathlib import Path

import click

from barnabas.cli.options import (
    bootstrap_server_option,
    command_config_option,
    listener_options,
    log_file_options,
    stop_with_stdin_option,
)


@click.command("registry")
@bootstrap_server_option
@listener_options(8081, users="clients")
@click.option(
    "--advertised-host", help="The host name that other instances connect to.  [default: the host]"
)
@click.option(
    "--schemas-topic",
    default="_schemas",
    show_default=True,
    help="The compacted topic of the schemas; created if it is missing.",
)
@click.option(
    "--group-id",
    default="schema-registry",
    show_default=True,
    help="Instances of one group elect the leader, which writes.",
)
@click.option(
    "--mode-mutability/--no-mode-mutability",
    default=True,
    show_default=True,
    help="Whether modes can be changed.",
)
@click.option(
    "--leader-eligibility/--no-leader-eligibility",
    default=True,
    show_default=True,
    help="Whether this instance may become the leader.",
)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A file of settings of the listener: TLS and authentication, by Confluent's names.",
)
@command_config_option
@stop_with_stdin_option
@log_file_options
def command(
    servers: str,
    port: int,
    host: str,
    advertised_host: str | None,
    schemas_topic: str,
    group_id: str,
    mode_mutability: bool,
    leader_eligibility: bool,
    config: str | None,
    command_config: str | None,
    stop_with_stdin: bool,
    log_file: Path | None,
    verbose: bool,
) -> None:
    """Run a schema registry until Ctrl-C.

    Several instances can use the same brokers: the leader writes, the others forward writes.

    \b
      barnabas registry -b kafka1:9092,kafka2:9092
      barnabas registry --config registry.properties
    """
    import asyncio

    from barnabas.cli.logs import configure_logging
    from barnabas.cli.operations.settings import read_properties
    from barnabas.cli.registry_server import read_listener, serve
    from barnabas.registry.settings import RegistrySettings

    configure_logging(log_file, verbose=verbose)
    listener = read_listener(config)
    settings = RegistrySettings(
        servers,
        host=host if listener.host is None else listener.host,
        port=port if listener.port is None else listener.port,
        advertised_host=advertised_host or listener.advertised_host,
        topic=schemas_topic,
        group_id=group_id,
        mode_mutability=mode_mutability,
        leader_eligibility=leader_eligibility,
        client=read_properties(command_config) if command_config else {},
        listener=listener,
    )
    asyncio.run(serve(settings, stop_with_stdin=stop_with_stdin))
