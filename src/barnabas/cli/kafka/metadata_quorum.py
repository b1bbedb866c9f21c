"""kafka-metadata-quorum: how the quorum of controllers stands, and who votes in it."""

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Verbs, connect
from barnabas.cli.kafka.output import print_tabbed
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.cli.operations.quorum import Quorum
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.quorum import ReplicaState

NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options().parse(arguments)
    with reasons_to_stderr():
        chosen.act(chosen)
    return 0


def _options() -> Verbs:
    options = Verbs("kafka-metadata-quorum", "This tool describes kraft metadata quorum status.")
    options.connection()
    verbs = options.verbs()
    describe = verbs.add_parser("describe", help="Describe the quorum.")
    describe.set_defaults(act=_describe)
    describe.add_argument("--status", action="store_true", help="In short.")
    describe.add_argument("--replication", action="store_true", help="Replica by replica.")
    describe.add_argument(
        "--human-readable", action="store_true", help="How long ago, instead of when."
    )
    add = verbs.add_parser(
        "add-controller", help="Have the controller vote whose file --command-config names."
    )
    add.set_defaults(act=_add)
    remove = verbs.add_parser("remove-controller", help="Have a controller vote no more.")
    remove.set_defaults(act=_remove)
    remove.add_argument("--controller-id", "-i", type=int, required=True, help="Its id.")
    remove.add_argument(
        "--controller-directory-id", "-d", required=True, help="The id of its directory."
    )
    for verb in add, remove:
        verb.add_argument("--dry-run", action="store_true", help="Only say what would be done.")
    return options


def _describe(chosen: Namespace) -> None:
    if chosen.status and chosen.replication:
        raise Refused(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not chosen.status and not chosen.replication:
        raise Refused(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if chosen.status and chosen.human_readable:
        raise Refused("The option --human-readable is only supported along with --replication")
    connect(chosen).ask(lambda admin: _print(admin, chosen))


async def _print(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.quorum import describe_quorum

    quorum = await describe_quorum(admin)
    if chosen.status:
        _print_status(quorum)
    else:
        _print_replication(quorum, human_readable=chosen.human_readable)


def _print_status(quorum: "Quorum") -> None:
    told, slowest, leader = quorum.told, quorum.slowest, quorum.leader
    lag_ms = -1
    if leader is not None and slowest.log_end_offset == leader.log_end_offset:
        lag_ms = 0
    elif leader and leader.last_caught_up_timestamp and slowest.last_caught_up_timestamp:
        lag_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    lines = {
        "ClusterId": quorum.cluster_id,
        "LeaderId": told.leader_id,
        "LeaderEpoch": told.leader_epoch,
        "HighWatermark": told.high_watermark,
        "MaxFollowerLag": quorum.end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum, told.voters),
        "CurrentObservers": _nodes(quorum, told.observers),
    }
    for name, value in lines.items():
        print(f"{name + ':':<24}{value}")


def _nodes(quorum: "Quorum", replicas: "Sequence[ReplicaState]") -> str:
    from barnabas.cli.operations.quorum import directory_text, endpoint_texts

    shown = []
    for replica in replicas:
        directory = directory_text(replica)
        quoted = "null" if directory is None else f'"{directory}"'
        fields = f'"id": {replica.replica_id}, "directoryId": {quoted}'
        if endpoints := endpoint_texts(quorum.told.nodes.get(replica.replica_id, [])):
            listed = ", ".join(f'"{each}"' for each in endpoints)
            fields += f', "endpoints": [{listed}]'
        shown.append(f"{{{fields}}}")
    return f"[{', '.join(shown)}]"


def _print_replication(quorum: "Quorum", *, human_readable: bool) -> None:
    from barnabas.cli.operations.quorum import directory_text

    leader_id = quorum.told.leader_id
    followers = [each for each in quorum.told.voters if each.replica_id != leader_id]
    roles = [("Leader", quorum.leader), *(("Follower", each) for each in followers)]
    roles += [("Observer", each) for each in quorum.told.observers]

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
                directory_text(replica) or NO_DIRECTORY,
                replica.log_end_offset,
                quorum.end_offset - replica.log_end_offset,
                moment(replica.last_fetch_timestamp),
                moment(replica.last_caught_up_timestamp),
                role,
            ]
            for role, replica in roles
            if replica is not None
        ],
    )  # fmt: skip


def _add(chosen: Namespace) -> None:
    from barnabas.cli.operations.quorum import add_controller, endpoint_texts, read_controller

    if chosen.command_config is None:
        raise Refused(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    controller = read_controller(chosen.command_config)
    if not chosen.dry_run:
        # The file is the controller's: none of its settings are this client's.
        connection = Connection(chosen.bootstrap_server, chosen.bootstrap_controller)
        connection.ask(lambda admin: add_controller(admin, controller))
    done = "DRY RUN of adding" if chosen.dry_run else "Added"
    endpoints = ", ".join(endpoint_texts(controller.endpoints))
    print(
        f"{done} controller {controller.node_id} with directory id {controller.directory_id} and "
        f"endpoints: {endpoints}"
    )


def _remove(chosen: Namespace) -> None:
    from barnabas.cli.operations.quorum import remove_controller

    node_id, directory_id = chosen.controller_id, chosen.controller_directory_id
    if not chosen.dry_run:
        connect(chosen).ask(lambda admin: remove_controller(admin, node_id, directory_id))
    done = "DRY RUN of removing " if chosen.dry_run else "Removed "
    print(f"{done} KRaft controller {node_id} with directory id {directory_id}")
