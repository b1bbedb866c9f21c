"""kafka-transactions: list and describe transactions, and abort hanging ones."""

import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import VERSION, SubcommandParser, connection_from, int32, int64
from barnabas.cli.kafka.output import describe_java_error, print_tabbed
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

DEFAULT_TIMEOUT_MINUTES = 15


@kafka_command
def main(arguments: Sequence[str]) -> int:
    args = _build_parser().parse(arguments)
    work: Callable[[AioAdminClient, Namespace], Awaitable[None]] = args.work
    connection_from(args).run(lambda admin: work(admin, args))
    return 0


def _build_parser() -> SubcommandParser:
    parser = SubcommandParser(
        "kafka-transactions",
        "This tool is used to analyze the transactional state of producers in the cluster. It can "
        "be used to detect and recover from hanging transactions.",
    )
    parser.add_argument("-v", "--version", action="version", version=VERSION)
    parser.add_argument("--command-config", metavar="FILE", help="A file of client settings.")
    parser.add_argument("--bootstrap-server", metavar="host:port", required=True)
    verbs = parser.add_subcommands()
    listing = verbs.add_parser("list", help="list transactions")
    listing.set_defaults(work=_list)
    listing.add_argument(
        "--duration-filter", type=int64, default=-1, help="only transactions open for longer, in ms"
    )
    listing.add_argument("--transactional-id-pattern", help="only ids that match")
    describe = verbs.add_parser("describe", help="describe the state of a transactional-id")
    describe.set_defaults(work=_describe)
    describe.add_argument("--transactional-id", required=True)
    producers = verbs.add_parser(
        "describe-producers", help="describe the active producers of a partition"
    )
    producers.set_defaults(work=_describe_producers)
    producers.add_argument("--broker-id", type=int32, help="the replica to query")
    abort = verbs.add_parser("abort", help="abort a hanging transaction")
    abort.set_defaults(work=_abort)
    for verb in producers, abort:
        verb.add_argument("--topic", required=True)
        verb.add_argument("--partition", type=int32, required=True)
    abort.add_argument("--start-offset", type=int64, help="the start offset of the transaction")
    for name in "--producer-id", "--producer-epoch", "--coordinator-epoch":
        abort.add_argument(name, type=int64, help="instead of --start-offset")
    hanging = verbs.add_parser("find-hanging", help="find hanging transactions")
    hanging.set_defaults(work=_find_hanging)
    hanging.add_argument("--broker-id", type=int32)
    hanging.add_argument("--max-transaction-timeout", type=int64, default=DEFAULT_TIMEOUT_MINUTES)
    hanging.add_argument("--topic")
    hanging.add_argument("--partition", type=int32)
    terminate = verbs.add_parser(
        "forceTerminateTransaction", help="abort the transaction that a transactional-id has open"
    )
    terminate.set_defaults(work=_terminate)
    terminate.add_argument("--transactionalId", dest="transactional_id", required=True)
    return parser


async def _list(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.transactions import list_transactions

    listed = await list_transactions(admin, args.duration_filter, args.transactional_id_pattern)
    print_tabbed(
        ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"],
        [
            [entry.transactional_id, broker, entry.producer_id, entry.state.value]
            for broker, entry in listed
        ],
    )


async def _describe(admin: "AioAdminClient", args: Namespace) -> None:
    name = args.transactional_id
    with _error_prefix(f"Failed to describe transaction state of transactional-id `{name}`"):
        transaction = (await admin.describe_transactions([name]))[name]
    started_ms = transaction.transaction_start_time_ms
    duration = "None" if started_ms is None else round(time.time() * 1000) - started_ms
    print_tabbed(
        ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
         "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
         "TopicPartitions"],
        [
            [
                transaction.coordinator_id,
                name,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.state.value,
                transaction.transaction_timeout_ms,
                "None" if started_ms is None else started_ms,
                duration,
                ",".join(f"{p.topic}-{p.partition}" for p in transaction.topic_partitions),
            ]
        ],
    )  # fmt: skip


async def _describe_producers(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.transactions import describe_producers

    partition = (args.topic, args.partition)
    replica = "leader" if args.broker_id is None else f"broker {args.broker_id}"
    failed = f"Failed to describe producers for partition {args.topic}-{args.partition}"
    with _error_prefix(f"{failed} on {replica}"):
        producers = await describe_producers(admin, partition, args.broker_id)
    print_tabbed(
        ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
         "CurrentTransactionStartOffset"],
        [
            [
                producer.producer_id,
                producer.producer_epoch,
                -1 if producer.coordinator_epoch is None else producer.coordinator_epoch,
                producer.last_sequence,
                producer.last_timestamp,
                "None"
                if producer.current_transaction_start_offset is None
                else producer.current_transaction_start_offset,
            ]
            for producer in producers
        ],
    )  # fmt: skip


async def _find_hanging(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.transactions import find_hanging_transactions

    if args.topic is None and args.broker_id is None:
        raise CommandError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if args.partition is not None and args.topic is None:
        raise CommandError("The --partition argument requires --topic to be provided")
    hanging = await find_hanging_transactions(
        admin,
        topic=args.topic,
        partition=args.partition,
        broker_id=args.broker_id,
        longer_than_minutes=args.max_transaction_timeout,
    )
    print_tabbed(
        ["Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
         "LastTimestamp", "Duration(min)"],
        [
            [
                *transaction.partition,
                transaction.producer.producer_id,
                transaction.producer.producer_epoch,
                -1
                if transaction.producer.coordinator_epoch is None
                else transaction.producer.coordinator_epoch,
                transaction.producer.current_transaction_start_offset,
                transaction.producer.last_timestamp,
                transaction.minutes,
            ]
            for transaction in hanging
        ],
    )  # fmt: skip


async def _abort(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.transactions import find_transaction
    from barnabas.client.admin.transactions import AbortTransactionSpec
    from barnabas.client.values import TopicPartition

    partition = (args.topic, args.partition)
    if args.start_offset is not None:
        spec = await find_transaction(admin, partition, args.start_offset)
    elif args.producer_id is None:
        raise CommandError(
            "The transaction to abort must be identified either with --start-offset (for brokers "
            "on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch "
            "(for older brokers)"
        )
    else:
        for name in "producer_epoch", "coordinator_epoch":
            if getattr(args, name) is None:
                raise CommandError(f"Missing required argument --{name.replace('_', '-')}")
        spec = AbortTransactionSpec(
            TopicPartition(*partition),
            args.producer_id,
            args.producer_epoch,
            max(0, args.coordinator_epoch),
        )
    with _error_prefix(f"Failed to abort transaction {spec}"):
        await admin.abort_transaction(spec)


async def _terminate(admin: "AioAdminClient", args: Namespace) -> None:
    name = args.transactional_id
    with _error_prefix(f"Failed to force terminate transactionalId `{name}`"):
        (await admin.fence_producers([name])).all()


@contextmanager
def _error_prefix(what: str) -> Iterator[None]:
    """Prefixes an error with what failed."""
    try:
        yield
    except Exception as error:
        message = describe_java_error(error)
        if message is None:
            raise
        raise CommandError(f"{what}: {message}") from None
