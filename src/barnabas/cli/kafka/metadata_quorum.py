"""kafka-metadata-quorum: describe the metadata quorum, add and remove controllers."""

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import SubcommandParser, connection_from, int32
from barnabas.cli.kafka.output import print_tabbed
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.cli.operations.cluster import QuorumStatus
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.cluster import ReplicaState

NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


@kafka_command
def main(arguments: Sequence[str]) -> int:
    args = _build_parser().parse(arguments)
    args.act(args)
    return 0


def _build_parser() -> SubcommandParser:
    parser = SubcommandParser(
        "kafka-metadata-quorum", "This tool describes kraft metadata quorum status."
    )
    parser.add_connection_options()
    verbs = parser.add_subcommands()
    describe = verbs.add_parser("describe", help="Describe the quorum.")
    describe.set_defaults(act=_describe)
    describe.add_argument("--status", action="store_true", help="Describe the status.")
    describe.add_argument(
        "--replication", action="store_true", help="Describe the replication of each node."
    )
    describe.add_argument(
        "--human-readable", action="store_true", help="Print times relative to now."
    )
    add = verbs.add_parser(
        "add-controller", help="Add the controller configured in --command-config as a voter."
    )
    add.set_defaults(act=_add)
    remove = verbs.add_parser("remove-controller", help="Remove a controller from the voters.")
    remove.set_defaults(act=_remove)
    remove.add_argument(
        "--controller-id", "-i", type=int32, required=True, help="The controller id."
    )
    remove.add_argument(
        "--controller-directory-id", "-d", required=True, help="The directory id of the controller."
    )
    for verb in add, remove:
        verb.add_argument(
            "--dry-run", action="store_true", help="Print the change without doing it."
        )
    return parser


def _describe(args: Namespace) -> None:
    if args.status and args.replication:
        raise CommandError(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not args.status and not args.replication:
        raise CommandError(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if args.status and args.human_readable:
        raise CommandError("The option --human-readable is only supported along with --replication")
    connection_from(args).run(lambda admin: _print(admin, args))


async def _print(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.cluster import describe_quorum

    quorum = await describe_quorum(admin)
    if args.status:
        _print_status(quorum)
    else:
        _print_replication(quorum, human_readable=args.human_readable)


def _print_status(quorum: "QuorumStatus") -> None:
    metadata, slowest, leader = quorum.metadata, quorum.slowest, quorum.leader
    lag_ms = -1
    if leader is not None and slowest.log_end_offset == leader.log_end_offset:
        lag_ms = 0
    elif leader and leader.last_caught_up_timestamp and slowest.last_caught_up_timestamp:
        lag_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    lines = {
        "ClusterId": quorum.cluster_id,
        "LeaderId": metadata.leader_id,
        "LeaderEpoch": metadata.leader_epoch,
        "HighWatermark": metadata.high_watermark,
        "MaxFollowerLag": quorum.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum, metadata.voters),
        "CurrentObservers": _nodes(quorum, metadata.observers),
    }
    for name, value in lines.items():
        print(f"{name + ':':<24}{value}")


def _nodes(quorum: "QuorumStatus", replicas: "Sequence[ReplicaState]") -> str:
    from barnabas.cli.operations.cluster import format_directory_id, format_endpoints

    nodes = []
    for replica in replicas:
        directory = format_directory_id(replica)
        quoted = "null" if directory is None else f'"{directory}"'
        fields = f'"id": {replica.replica_id}, "directoryId": {quoted}'
        if endpoints := format_endpoints(quorum.metadata.nodes.get(replica.replica_id, [])):
            listed = ", ".join(f'"{endpoint}"' for endpoint in endpoints)
            fields += f', "endpoints": [{listed}]'
        nodes.append(f"{{{fields}}}")
    return f"[{', '.join(nodes)}]"


def _print_replication(quorum: "QuorumStatus", *, human_readable: bool) -> None:
    from barnabas.cli.operations.cluster import format_directory_id

    leader_id = quorum.metadata.leader_id
    followers = [voter for voter in quorum.metadata.voters if voter.replica_id != leader_id]
    roles = [("Leader", quorum.leader), *(("Follower", follower) for follower in followers)]
    roles += [("Observer", observer) for observer in quorum.metadata.observers]

    def moment(timestamp_ms: int | None) -> str:
        if timestamp_ms is None:
            return "-1"
        if not human_readable:
            return str(timestamp_ms)
        return f"{max(0, round(time.time() * 1000) - timestamp_ms)} ms ago"

    print_tabbed(
        ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp",
         "LastCaughtUpTimestamp", "Status"],
        [
            [
                replica.replica_id,
                format_directory_id(replica) or NO_DIRECTORY,
                replica.log_end_offset,
                quorum.log_end_offset - replica.log_end_offset,
                moment(replica.last_fetch_timestamp),
                moment(replica.last_caught_up_timestamp),
                role,
            ]
            for role, replica in roles
            if replica is not None
        ],
    )  # fmt: skip


def _add(args: Namespace) -> None:
    from barnabas.cli.operations.cluster import add_controller, format_endpoints, read_controller

    if args.command_config is None:
        raise CommandError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    controller = read_controller(args.command_config)
    if not args.dry_run:
        # The file configures the controller, not this client.
        connection = Connection(args.bootstrap_server, args.bootstrap_controller)
        connection.run(lambda admin: add_controller(admin, controller))
    done = "DRY RUN of adding" if args.dry_run else "Added"
    endpoints = ", ".join(format_endpoints(controller.endpoints))
    print(
        f"{done} controller {controller.node_id} with directory id {controller.directory_id} and "
        f"endpoints: {endpoints}"
    )


def _remove(args: Namespace) -> None:
    from barnabas.cli.operations.cluster import remove_controller

    node_id, directory_id = args.controller_id, args.controller_directory_id
    if not args.dry_run:
        connection_from(args).run(lambda admin: remove_controller(admin, node_id, directory_id))
    done = "DRY RUN of removing " if args.dry_run else "Removed "
    print(f"{done} KRaft controller {node_id} with directory id {directory_id}")
