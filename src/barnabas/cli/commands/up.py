"""`barnabas up` and `barnabas start`: run brokers on this machine, or one node from a file."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.options import (
    listener_options,
    log_file_options,
    override_option,
    stop_with_stdin_option,
    verbose_option,
)

if TYPE_CHECKING:
    from barnabas.cli.operations.errors import CommandError
    from barnabas.cli.registry_process import RegistryPlan
    from barnabas.cli.up_options import UpOptions
    from barnabas.config import BrokerSettings
    from barnabas.node.errors import PortInUse

DEFAULT_REGISTRY_PORT = 8081

_PORT_ATTEMPTS = 10
"""A port that was free may be taken when it is bound: how often to choose others."""


@click.command("up")
@listener_options(9092, highest=65534, users="clients")
@click.option(
    "--dir",
    "directory",
    default="data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The data directory; formatted if it is empty.",
)
@click.option(
    "--brokers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Number of brokers, each a process on the next ports, with replicated topics.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Port of the Prometheus metrics; further brokers have the next ports.  "
    "[default: 9308, or the next free port]",
)
@click.option("--no-metrics", is_flag=True, help="Do not serve Prometheus metrics.")
@click.option(
    "--registry-port",
    type=click.IntRange(0, 65535),
    help="Port of the schema registry; 0 for any free port.  [default: 8081, or any with --port 0]",
)
@click.option("--no-registry", is_flag=True, help="Do not run a schema registry.")
@click.option(
    "--secure",
    is_flag=True,
    help="Use TLS, logins and ACLs: makes certificates, and a file that clients connect with.",
)
@verbose_option
@override_option
def command(
    port: int,
    host: str,
    directory: Path,
    brokers: int,
    metrics_port: int | None,
    no_metrics: bool,
    registry_port: int | None,
    no_registry: bool,
    secure: bool,
    verbose: bool,
    overrides: dict[str, str],
) -> None:
    """Run one or more brokers on this machine until Ctrl-C.

    \b
      barnabas up
      barnabas up --brokers 3 --port 9192 --dir cluster
      barnabas up --secure --dir secured
      barnabas up --set num.partitions=6 --set auto.create.topics.enable=false
    """
    from barnabas.cli.local_security import prepare_security, require_unsecured
    from barnabas.cli.registry_process import RegistryPlan
    from barnabas.cli.up_options import UpOptions

    directory = directory.absolute()
    if not secure:
        require_unsecured(directory)
    url_host = f"[{host}]" if ":" in host else host
    registry_plan = None
    if not no_registry:
        default = DEFAULT_REGISTRY_PORT if port else 0
        registry_plan = RegistryPlan.for_port(url_host, registry_port, default, is_secured=secure)
    options = UpOptions(
        host=url_host,
        port=port,
        directory=directory,
        brokers=brokers,
        metrics_port=metrics_port,
        has_metrics=not no_metrics,
        is_verbose=verbose,
        overrides=overrides,
        reserved_ports=registry_plan.ports if registry_plan is not None else (),
        security=prepare_security(directory, host, overrides.get("advertised.listeners", ""))
        if secure
        else None,
    )
    if brokers == 1:
        _run_one(options, registry_plan)
    else:
        _run_several(options, registry_plan)


def _run_one(options: "UpOptions", registry_plan: "RegistryPlan | None") -> None:
    from barnabas.cli.banner import node_banner
    from barnabas.cli.foreground import run_node
    from barnabas.cli.local_cluster import node_files
    from barnabas.cli.logs import log_to_file
    from barnabas.cli.operations.errors import CommandError
    from barnabas.cli.operations.local_processes import describe_taken_directory
    from barnabas.cli.registry_process import RegistryProcess
    from barnabas.cli.up_options import LOG_FILE
    from barnabas.node.errors import LogDirInUse, PortInUse
    from barnabas.node.format import format_new_directories

    directory = options.directory
    if files := node_files(directory):
        raise CommandError(
            f"{directory} has a cluster of {len(files)}: use --brokers {len(files)}, or choose "
            "another --dir."
        )
    settings = _settings_of_one(options)
    format_new_directories(settings, options.scram_users())
    log_file = Path(settings.log_dirs[0], LOG_FILE)
    has_log_file = log_to_file(log_file, verbose=options.is_verbose)
    shown_log = str(log_file) if has_log_file else "standard error"
    for attempt in count(1):
        try:
            run_node(
                settings,
                banner=lambda node: node_banner(node, shown_log, registry_plan, options.security),
                registry=RegistryProcess.of(registry_plan, log_file.parent, options),
            )
            return
        except PortInUse as taken:
            if _is_chosen(taken, options) or attempt == _PORT_ATTEMPTS:
                raise _port_error(taken, options) from None
            settings = _settings_of_one(options)
        except LogDirInUse as taken:
            holder = describe_taken_directory(taken.path)
            raise CommandError(f"{holder}. Stop it, or choose another --dir.") from None


def _settings_of_one(options: "UpOptions") -> "BrokerSettings":
    """Returns the settings of a single node, with free ports where the user chose none."""
    from barnabas.cli.local_ports import next_free_port
    from barnabas.cli.operations.settings import check_settings
    from barnabas.cli.up_options import METRICS_LISTENER
    from barnabas.node.format import host_for_local_nodes, single_node_properties

    host, port = options.host, options.port
    local_host = host_for_local_nodes(host).strip("[]")
    controller_port = next_free_port(local_host, port + 1, options.reserved_ports) if port else 0
    properties = single_node_properties(host, port, options.log_dir_of_one, controller_port)
    for listener in options.metrics_listeners(1, (port, controller_port)):
        properties[METRICS_LISTENER] = listener
    return check_settings(options.node_properties(properties))


def _is_chosen(taken: "PortInUse", options: "UpOptions") -> bool:
    """Whether the user chose the port, so that no other one can be taken instead."""
    if taken.setting in options.overrides:
        return True
    return taken.port in (options.port, options.metrics_port)


def _port_error(taken: "PortInUse", options: "UpOptions") -> "CommandError":
    from barnabas.cli.local_ports import suggest_port
    from barnabas.cli.operations.errors import CommandError
    from barnabas.cli.operations.local_processes import describe_taken_port

    holder = describe_taken_port(taken.host, taken.port)
    if taken.setting in options.overrides:
        return CommandError(f"{holder}. Stop it, or change {taken.setting}.")
    option = "--port" if taken.port == options.port else "--metrics-port"
    port = suggest_port(taken.host, taken.port)
    return CommandError(f"{holder}. Stop it, or choose another port: {option} {port}")


def _run_several(options: "UpOptions", registry_plan: "RegistryPlan | None") -> None:
    from barnabas.cli.banner import cluster_banner
    from barnabas.cli.foreground import run_cluster
    from barnabas.cli.local_cluster import prepare_nodes
    from barnabas.cli.registry_process import RegistryProcess

    nodes = prepare_nodes(options)
    run_cluster(
        nodes,
        banner=lambda cluster: cluster_banner(cluster, registry_plan, options),
        client_settings=options.client_settings(),
        registry=RegistryProcess.of(registry_plan, options.directory, options),
        is_verbose=options.is_verbose,
    )


@click.command("start")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@stop_with_stdin_option
@log_file_options
@override_option
def start(
    file: Path,
    stop_with_stdin: bool,
    log_file: Path | None,
    verbose: bool,
    overrides: dict[str, str],
) -> None:
    """Run a node from a server.properties FILE.

    Its log directories must be formatted: see `barnabas storage format`.

    \b
      barnabas start server.properties
      barnabas start server.properties --set log.retention.hours=24
    """
    from barnabas.cli.foreground import run_node_from_file
    from barnabas.cli.logs import configure_logging

    configure_logging(log_file, verbose=verbose)
    run_node_from_file(file, overrides, stop_with_stdin=stop_with_stdin)
