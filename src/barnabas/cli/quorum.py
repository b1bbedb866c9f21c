"""`barnabas quorum`: the controllers, and how far each has come in the metadata log."""

import click

from barnabas.cli.ask import Conversation, bootstrap, converse, parse_addresses
from barnabas.cli.tables import echo_table
from barnabas.config.addresses import Endpoint
from barnabas.raft import METADATA_TOPIC
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from barnabas.wire.uuid import ZERO, to_text

SILENT_MS = 5_000
"""Whoever has not fetched for so long is named: all do, twice a second at least."""

CONTROLLERS = 2
NO_CONTROLLER = (
    "no controller is active: a majority of the voters must run and reach each other; their logs "
    "say what keeps them from it"
)
_WITHOUT_A_LEADER = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_CONTROLLER,
)


@click.group("quorum")
def command() -> None:
    """Look at the controllers."""


@command.command("describe")
@bootstrap
@click.option(
    "--bootstrap-controller",
    "-C",
    "controllers",
    metavar="HOST:PORT,...",
    callback=parse_addresses,
    help="Controllers to ask instead, at their own listeners.",
)
def describe(servers: list[Endpoint], controllers: list[Endpoint] | None) -> None:
    """Show who leads the metadata log, who votes, and who lags."""
    if controllers is not None:
        response = converse(controllers, ask_controllers)
    else:
        response = converse(servers, ask_brokers)
    if response is None:
        raise click.ClickException(NO_CONTROLLER)
    _echo_quorum(response)


async def ask_brokers(conversation: Conversation) -> DescribeQuorumResponse | None:
    """What the active controller tells a broker; None if there is none."""
    # Whoever answers this needs no controller for it: it is the one to wait for.
    await conversation.ask(DescribeClusterRequest())
    return await ask_quorum(conversation)


async def ask_quorum(conversation: Conversation) -> DescribeQuorumResponse | None:
    """The quorum, by whoever answered last; None if there is no active controller."""
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    try:
        response: DescribeQuorumResponse = await conversation.ask(
            DescribeQuorumRequest(topics=[topic])
        )
    except TimeoutError:
        return None
    return None if _code(response) in _WITHOUT_A_LEADER else response


async def ask_controllers(conversation: Conversation) -> DescribeQuorumResponse | None:
    """What the active controller says, asked at its own listener; None if there is none."""
    known: DescribeClusterResponse = await conversation.ask(
        DescribeClusterRequest(endpoint_type=CONTROLLERS)
    )
    for controller in known.brokers:
        if controller.broker_id == known.controller_id:
            conversation.go_to(controller.host, controller.port)
    try:
        return await ask_quorum(conversation)
    except ConnectionError:
        return None  # it was the active one


def partition_of(response: DescribeQuorumResponse) -> ResponsePartitionData:
    """The one partition of the metadata log; ClickException if there is an error in its place."""
    code = _code(response)
    if code is not ErrorCode.NONE:
        raise click.ClickException(response.error_message or code.name)
    return response.topics[0].partitions[0]


def _code(response: DescribeQuorumResponse) -> ErrorCode:
    if response.error_code or not response.topics:
        return ErrorCode.of(response.error_code)
    return ErrorCode.of(response.topics[0].partitions[0].error_code)


def _echo_quorum(response: DescribeQuorumResponse) -> None:
    quorum = partition_of(response)
    endpoints = {
        node.node_id: ", ".join(f"{each.host}:{each.port}" for each in node.listeners)
        for node in response.nodes
    }
    voters = quorum.current_voters
    replicas = [("voter", each) for each in voters]
    replicas += [("observer", each) for each in quorum.observers]
    leader = [each for _, each in replicas if each.replica_id == quorum.leader_id]
    # The leader "fetched" at the moment it was asked: that is what it is by its clock.
    now_ms = max(each.last_fetch_timestamp for each in leader or voters)
    end_offset = max(each.log_end_offset for each in leader or voters)
    silent = [each for each in voters if now_ms - each.last_fetch_timestamp >= SILENT_MS]
    click.echo(
        f"Leader: {quorum.leader_id}   epoch: {quorum.leader_epoch}   "
        f"high watermark: {quorum.high_watermark}"
    )
    click.echo(
        f"Voters: {len(voters)}   needed: {len(voters) // 2 + 1}   "
        f"silent: {', '.join(str(each.replica_id) for each in silent) or 'none'}"
    )
    echo_table(
        ["NODE", "ROLE", "LOG END", "LAG", "LAST FETCH", "CAUGHT UP", "DIRECTORY", "ADDRESS"],
        [
            [
                replica.replica_id,
                "leader" if replica in leader else role,
                *_progress(replica, end_offset, now_ms),
                _directory(replica),
                endpoints.get(replica.replica_id, "-"),
            ]
            for role, replica in replicas
        ],
    )


def _progress(replica: ReplicaState, end_offset: int, now_ms: int) -> list[object]:
    """Its log's end, how much it lacks, when it fetched and when it lacked nothing."""
    if replica.log_end_offset < 0:
        return ["-", "-", "never", "never"]
    return [
        replica.log_end_offset,
        end_offset - replica.log_end_offset,
        _ago(now_ms - replica.last_fetch_timestamp),
        _ago(now_ms - replica.last_caught_up_timestamp),
    ]


def _ago(passed_ms: int) -> str:
    return f"{max(0, passed_ms)} ms ago" if passed_ms < 10_000 else f"{passed_ms // 1000} s ago"


def _directory(replica: ReplicaState) -> str:
    directory_id = replica.replica_directory_id
    return to_text(directory_id) if directory_id != ZERO else "-"
