"""kafka-cluster: the cluster id, the endpoints, and unregistering a broker."""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import SubcommandParser, connection_from, int32

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient


@kafka_command
def main(arguments: Sequence[str]) -> int:
    args = _build_parser().parse(arguments)
    work: Callable[[AioAdminClient, Namespace], Awaitable[None]] = args.work
    connection_from(args).run(lambda admin: work(admin, args))
    return 0


def _build_parser() -> SubcommandParser:
    parser = SubcommandParser("kafka-cluster", "The Kafka cluster tool.")
    verbs = parser.add_subcommands()
    cluster_id = verbs.add_parser("cluster-id", help="Show the id of the cluster.")
    cluster_id.set_defaults(work=_cluster_id)
    unregister = verbs.add_parser("unregister", help="Unregister a broker.")
    unregister.set_defaults(work=_unregister)
    unregister.add_argument("--id", "-i", type=int32, required=True, help="The broker's id.")
    endpoints = verbs.add_parser("list-endpoints", help="List the endpoints of the nodes.")
    endpoints.set_defaults(work=_list_endpoints)
    endpoints.add_argument(
        "--include-fenced-brokers", action="store_true", help="Include fenced brokers."
    )
    for verb in cluster_id, unregister, endpoints:
        verb.add_connection_options(letters=True)
        verb.add_argument(
            "--config", dest="command_config", metavar="FILE", help="Deprecated: --command-config."
        )
    return parser


async def _cluster_id(admin: "AioAdminClient", _args: Namespace) -> None:
    cluster = await admin.describe_cluster()
    if cluster.cluster_id:
        print(f"Cluster ID: {cluster.cluster_id}")
    else:
        print("No cluster ID found. The Kafka version is probably too old.")


async def _unregister(admin: "AioAdminClient", args: Namespace) -> None:
    await admin.unregister_broker(args.id)
    print(f"Broker {args.id} is no longer registered.")


async def _list_endpoints(admin: "AioAdminClient", args: Namespace) -> None:
    cluster = await admin.describe_cluster(include_fenced_brokers=args.include_fenced_brokers)
    is_broker = not args.bootstrap_controller
    nodes = sorted(cluster.nodes, key=lambda node: node.id)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    for node in nodes:
        state = "fenced" if node.id in cluster.fenced else "unfenced"
        kind = "broker" if is_broker else "controller"
        endpoint = (str(node.id), node.host, str(node.port), node.rack or "null")
        rows.append((*endpoint, state, kind))
    widths = [10, max(len(row[1]) for row in rows), 10, 10, 10, 15]
    columns = [column for column in range(len(widths)) if is_broker or column != 4]
    for row in rows:
        print(" ".join(row[column].ljust(widths[column]) for column in columns))
