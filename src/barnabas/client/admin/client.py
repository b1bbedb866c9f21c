"""`AdminClient`: the calls of `AioAdminClient` for programs without an event loop, as futures.

A method has the parameters and the docstring of the coroutine that it runs on the loop thread,
which all clients without an own loop share. The futures cannot be cancelled, like
`confluent_kafka`'s: the request has been sent.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import queue
import warnings
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from types import GenericAlias, TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.admin.requests import UNSET
from barnabas.client.admin.results import Results
from barnabas.client.admin.scram import UserScramCredentialsDescription as ScramDescription
from barnabas.client.client_finalizer import ClientFinalizer
from barnabas.client.errors import KafkaError, KafkaException, fail, log_unhandled_error
from barnabas.client.loop_thread import LoopThread
from barnabas.client.methods import documented
from barnabas.client.settings import EXPECTED_SETTINGS, AdminSettings, admin_settings
from barnabas.client.values import TopicPartition

P = ParamSpec("P")
K = TypeVar("K")
V = TypeVar("V")

AioMethod = Callable[Concatenate[AioAdminClient, P], Coroutine[Any, Any, V]]

MAX_QUEUED_ERRORS = 1000
"""Errors that wait for `poll`; later ones are dropped."""

CLOSE_TIMEOUT_S = 10.0


def blocking(call: AioMethod[P, V]) -> "Callable[Concatenate[AdminClient, P], V]":
    """Returns the method that waits for this call and returns its value."""

    def method(self: "AdminClient", /, *args: P.args, **kwargs: P.kwargs) -> V:
        return self._runner.run(call(self._admin, *args, **kwargs))

    return documented(method, call, _value_type)


def future(call: AioMethod[P, V]) -> "Callable[Concatenate[AdminClient, P], Future[V]]":
    """Returns the method that starts this call and returns the future of its value."""

    def method(self: "AdminClient", /, *args: P.args, **kwargs: P.kwargs) -> Future[V]:
        return self._runner.future(call(self._admin, *args, **kwargs))

    return documented(method, call, lambda coroutine: GenericAlias(Future, _value_type(coroutine)))


def futures(
    call: AioMethod[P, Results[K, V]], keys: Callable[[Any], Iterable[K]] = list
) -> "Callable[Concatenate[AdminClient, P], dict[K, Future[V]]]":
    """Returns the method that starts this call and returns a future for each of its items.

    `keys` returns the keys of the results for the first argument of the call.
    """
    _, first, *_ = inspect.signature(call).parameters

    def method(self: "AdminClient", /, *args: P.args, **kwargs: P.kwargs) -> dict[K, Future[V]]:
        results = call(self._admin, *args, **kwargs)
        return self._runner.futures(keys(args[0] if args else kwargs[first]), results)

    def returns(coroutine: Any) -> Any:
        key, value = get_args(_value_type(coroutine))
        return GenericAlias(dict, (key, GenericAlias(Future, value)))

    return documented(method, call, returns)


def _value_type(coroutine: Any) -> Any:
    *_, value = get_args(coroutine)
    return value


def deprecated(method: Callable[P, V], message: str) -> Callable[P, V]:
    """Returns a method that warns whenever it is called."""

    @functools.wraps(method)
    def warning(*args: P.args, **kwargs: P.kwargs) -> V:
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return method(*args, **kwargs)

    return warning


def _group_ids(groups: Iterable[ConsumerGroupTopicPartitions]) -> list[str]:
    return [group.group_id for group in groups]


class AdminClient:
    """An admin client for any thread, with the surface of `confluent_kafka.admin.AdminClient`.

        admin = AdminClient({"bootstrap.servers": "localhost:9092"})
        for topic, future in admin.create_topics([NewTopic("orders", 6)]).items():
            future.result()  # raises KafkaException if the topic was not created

    A call about several items returns a dict with a future for each item, any other call one
    future. Wrong arguments raise at once; what brokers report raises from `Future.result()`.

    `request_timeout` is the time in seconds that the whole call may take, with its retries
    (default: `default.api.timeout.ms`). `operation_timeout` is the time that brokers may take to
    apply a change to the whole cluster (default: what is left of the request timeout).
    """

    def __init__(self, conf: dict[str, Any], **kwargs: Any) -> None:
        if not isinstance(conf, dict):
            raise TypeError(EXPECTED_SETTINGS)
        self._runner = AdminRunner(admin_settings(conf | kwargs))
        self._admin = self._runner.admin

    def close(self) -> None:
        """Closes the connections; futures that are not done fail.

        A client that is no longer referenced closes when its last call is done.
        """
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._runner.errors)

    def poll(self, timeout: float = UNSET) -> int:
        """Calls `error_cb` with connection errors, and returns how often it was called.

        Waits up to `timeout` seconds for the first error (-1: as long as it takes). Futures
        complete without it.
        """
        return self._runner.errors.serve(timeout)

    # The cluster

    list_topics = blocking(AioAdminClient.list_topics)
    cluster_id = blocking(AioAdminClient.cluster_id)
    describe_cluster = future(AioAdminClient.describe_cluster)
    describe_api_versions = future(AioAdminClient.describe_api_versions)
    unregister_broker = future(AioAdminClient.unregister_broker)

    # Topics and partitions

    create_topics = futures(
        AioAdminClient.create_topics, keys=lambda topics: [new.topic for new in topics]
    )
    delete_topics = futures(AioAdminClient.delete_topics)
    describe_topics = futures(
        AioAdminClient.describe_topics, keys=lambda topics: topics.topic_names
    )
    create_partitions = futures(
        AioAdminClient.create_partitions, keys=lambda topics: [new.topic for new in topics]
    )
    list_offsets = futures(
        AioAdminClient.list_offsets,
        keys=lambda specs: [
            TopicPartition(partition.topic, partition.partition, spec._value)
            for partition, spec in specs.items()
        ],
    )
    delete_records = futures(AioAdminClient.delete_records)
    elect_leaders = future(AioAdminClient.elect_leaders)
    alter_partition_reassignments = futures(AioAdminClient.alter_partition_reassignments)
    list_partition_reassignments = future(AioAdminClient.list_partition_reassignments)
    describe_producers = futures(AioAdminClient.describe_producers)

    # Configs

    describe_configs = futures(AioAdminClient.describe_configs)
    alter_configs = deprecated(
        futures(AioAdminClient.alter_configs),
        "alter_configs replaces all configs: incremental_alter_configs is safer",
    )
    incremental_alter_configs = futures(AioAdminClient.incremental_alter_configs)
    list_config_resources = future(AioAdminClient.list_config_resources)

    # Groups

    list_groups = deprecated(
        blocking(AioAdminClient.list_groups),
        "list_groups is deprecated: use list_consumer_groups and describe_consumer_groups",
    )
    list_group_listings = future(AioAdminClient.list_group_listings)
    list_consumer_groups = future(AioAdminClient.list_consumer_groups)
    describe_consumer_groups = futures(AioAdminClient.describe_consumer_groups)
    delete_consumer_groups = futures(AioAdminClient.delete_consumer_groups)
    remove_members_from_consumer_group = future(AioAdminClient.remove_members_from_consumer_group)
    list_consumer_group_offsets = futures(
        AioAdminClient.list_consumer_group_offsets, keys=_group_ids
    )
    alter_consumer_group_offsets = futures(
        AioAdminClient.alter_consumer_group_offsets, keys=_group_ids
    )
    delete_consumer_group_offsets = futures(
        AioAdminClient.delete_consumer_group_offsets, keys=_group_ids
    )

    # Log directories

    describe_log_dirs = futures(AioAdminClient.describe_log_dirs)
    describe_replica_log_dirs = futures(AioAdminClient.describe_replica_log_dirs)
    alter_replica_log_dirs = futures(AioAdminClient.alter_replica_log_dirs)

    # Transactions

    list_transactions = future(AioAdminClient.list_transactions)
    describe_transactions = futures(AioAdminClient.describe_transactions)
    abort_transaction = future(AioAdminClient.abort_transaction)
    fence_producers = futures(AioAdminClient.fence_producers)
    complete_transactions = futures(AioAdminClient.complete_transactions)
    fence_transactions = futures(AioAdminClient.fence_transactions)

    # Features and the metadata quorum

    describe_features = future(AioAdminClient.describe_features)
    update_features = futures(AioAdminClient.update_features)
    describe_metadata_quorum = future(AioAdminClient.describe_metadata_quorum)
    add_raft_voter = future(AioAdminClient.add_raft_voter)
    remove_raft_voter = future(AioAdminClient.remove_raft_voter)

    # Quotas, ACLs and credentials

    describe_client_quotas = future(AioAdminClient.describe_client_quotas)
    alter_client_quotas = futures(
        AioAdminClient.alter_client_quotas,
        keys=lambda alterations: [change.entity for change in alterations],
    )
    create_acls = futures(AioAdminClient.create_acls)
    describe_acls = future(AioAdminClient.describe_acls)
    delete_acls = futures(AioAdminClient.delete_acls)
    alter_user_scram_credentials = futures(
        AioAdminClient.alter_user_scram_credentials,
        keys=lambda alterations: [change.user for change in alterations],
    )
    create_delegation_token = future(AioAdminClient.create_delegation_token)
    renew_delegation_token = future(AioAdminClient.renew_delegation_token)
    expire_delegation_token = future(AioAdminClient.expire_delegation_token)
    describe_delegation_token = future(AioAdminClient.describe_delegation_token)

    def describe_user_scram_credentials(
        self, users: list[str] | None = None, *, request_timeout: float = UNSET
    ) -> Future[dict[str, ScramDescription]] | dict[str, Future[ScramDescription]]:
        """Returns mechanisms and iterations of users' credentials, by user; never passwords.

        Without `users`, all users with credentials are described.
        """
        call = self._admin.describe_user_scram_credentials(users, request_timeout=request_timeout)
        if users is None:
            return self._runner.future(_all(call))
        return self._runner.futures(users, call)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Uses these credentials for connections opened from now on."""
        if not isinstance(username, str) or not isinstance(password, str):
            raise TypeError("username and password must be strings")
        self._runner.thread.call(self._admin.set_sasl_credentials, username, password)


async def _all(call: Coroutine[Any, Any, Results[K, V]]) -> dict[K, V]:
    return (await call).all()


class AdminRunner:
    """An `AioAdminClient` on the loop that all clients without an own loop share."""

    def __init__(self, settings: AdminSettings) -> None:
        self.errors = ErrorQueue(settings)
        self.thread = LoopThread.shared()
        self.admin = self.thread.run(_open(settings, self.errors))
        self._is_closed = False
        self._finalizer = ClientFinalizer(self, functools.partial(_close, self.thread, self.admin))

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._finalizer.detach()
        closed = _close(self.thread, self.admin)
        if closed is not None:
            closed.result(CLOSE_TIMEOUT_S)

    def run(self, call: Coroutine[Any, Any, V]) -> V:
        """Waits for a call and returns its value."""
        return self.thread.run(self._require_open(call))

    def future(self, call: Coroutine[Any, Any, V]) -> Future[V]:
        """Starts a call and returns the future of its value."""
        future: Future[V] = _running()
        self._start(call).add_done_callback(
            lambda done: _complete(done, future.set_result, future.set_exception)
        )
        return future

    def futures(
        self, keys: Iterable[K], call: Coroutine[Any, Any, Results[K, V]]
    ) -> dict[K, Future[V]]:
        """Starts a call about several items and returns a future for each item."""
        futures: dict[K, Future[V]] = {key: _running() for key in keys}

        def succeeded(results: Results[K, V]) -> None:
            for key, future in futures.items():
                try:
                    future.set_result(results[key])
                except Exception as failure:
                    future.set_exception(failure)

        def failed(failure: BaseException) -> None:
            for future in futures.values():
                future.set_exception(failure)

        self._start(call).add_done_callback(lambda done: _complete(done, succeeded, failed))
        return futures

    def _start(self, call: Coroutine[Any, Any, V]) -> Future[V]:
        """A caller may keep nothing but the future: until it is done it keeps this runner open."""
        started = self.thread.submit(self._require_open(call))
        references = [self]
        started.add_done_callback(lambda _: references.clear())
        return started

    def _require_open(self, call: Coroutine[Any, Any, V]) -> Coroutine[Any, Any, V]:
        if self._is_closed:
            call.close()
            fail(KafkaError._DESTROY, "the client was closed")
        return call


class ErrorQueue:
    """Connection errors on their way from the loop thread to `error_cb` in the user's.

    Without `error_cb`, they are logged as those of other clients.
    """

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._error_cb = settings.error_cb
        self._errors: queue.Queue[KafkaError] = queue.Queue(MAX_QUEUED_ERRORS)

    def __len__(self) -> int:
        return self._errors.qsize()

    def put(self, error: KafkaError) -> None:
        if self._error_cb is None:
            log_unhandled_error(self._settings, error)
        elif not self._errors.full():
            self._errors.put_nowait(error)

    def serve(self, timeout_s: float) -> int:
        """Calls `error_cb` for every error, and returns how often."""
        served = 0
        try:
            error = self._errors.get(timeout=None if timeout_s < 0 else timeout_s)
            while True:
                served += 1
                if self._error_cb is not None:
                    self._error_cb(error)
                error = self._errors.get_nowait()
        except queue.Empty:
            return served


async def _open(settings: AdminSettings, errors: ErrorQueue) -> AioAdminClient:
    return AioAdminClient(settings, errors.put)


def _close(thread: LoopThread, admin: AioAdminClient) -> Future[None] | None:
    """Does not wait: the garbage collector may call it in the thread of the loop itself."""
    return None if thread.is_in_forked_child else thread.close_client(admin.close())


def _complete(
    call: "Future[V]", succeeded: Callable[[V], None], failed: Callable[[BaseException], None]
) -> None:
    try:
        value = call.result()
    except (asyncio.CancelledError, concurrent.futures.CancelledError):
        failed(KafkaException(KafkaError(KafkaError._DESTROY, "the admin client was closed")))
    except Exception as failure:
        failed(failure)
    else:
        succeeded(value)


def _running() -> Future[V]:
    future: Future[V] = Future()
    future.set_running_or_notify_cancel()
    return future
