"""`AdminClient`: the calls of `AioAdminClient` for programs without a loop, answered by futures.

Methods, arguments and results are those of `confluent_kafka.admin.AdminClient`: a call about
several things gives a dict with one future for each, every other call one future. Options, all
given by keyword, are those of the coroutine of the same name.
"""

import queue
import warnings
import weakref
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.calls import UNSET, Results
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.futures import future_each, one_future
from barnabas.client.admin.group_metadata import GroupMetadata
from barnabas.client.admin.metadata import ClusterMetadata
from barnabas.client.admin.model import TopicCollection
from barnabas.client.admin.partitions import NewPartitions
from barnabas.client.admin.topics import NewTopic, TopicDescription
from barnabas.client.errors import KafkaError
from barnabas.client.loop_thread import LoopThread
from barnabas.client.settings import AdminSettings, admin_settings

K = TypeVar("K")
V = TypeVar("V")


class AdminClient:
    """An admin client for any thread."""

    def __init__(self, conf: dict[str, Any], **kwargs: Any) -> None:
        if not isinstance(conf, dict):
            raise TypeError("expected configuration dict")
        settings = admin_settings(conf | kwargs)
        self._error_cb = settings.error_cb
        self._told: queue.SimpleQueue[KafkaError] = queue.SimpleQueue()
        self._thread = LoopThread.shared()
        self._core = self._thread.run(_begin(settings, self._told))
        self._finalize = weakref.finalize(self, _end, self._thread, self._core)

    def close(self) -> None:
        """Hang up; futures that are not done fail. Happens by itself when nobody needs it."""
        self._finalize()

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
        return self._told.qsize()

    def poll(self, timeout: float = UNSET) -> int:
        """Have `error_cb` called for what has gone wrong; how many times it was."""
        served = 0
        try:
            error = self._told.get(timeout=None if timeout < 0 else timeout)
            while True:
                served += 1
                if self._error_cb is not None:
                    self._error_cb(error)
                error = self._told.get_nowait()
        except queue.Empty:
            return served

    # The cluster

    def list_topics(self, topic: str | None = None, timeout: float = UNSET) -> ClusterMetadata:
        return self._now(self._core.list_topics(topic, timeout))

    def cluster_id(self, timeout: float = UNSET) -> str | None:
        return self._now(self._core.cluster_id(timeout))

    def describe_cluster(self, **kwargs: Any) -> "Future[Any]":
        return self._one(self._core.describe_cluster(**kwargs))

    def describe_api_versions(self, **kwargs: Any) -> "Future[Any]":
        return self._one(self._core.describe_api_versions(**kwargs))

    def unregister_broker(self, broker_id: int, **kwargs: Any) -> "Future[None]":
        return self._one(self._core.unregister_broker(broker_id, **kwargs))

    # Topics and partitions

    def create_topics(self, new_topics: list[NewTopic], **kwargs: Any) -> "dict[str, Future[None]]":
        call = self._core.create_topics(new_topics, **kwargs)
        return self._each((topic.topic for topic in new_topics), call)

    def delete_topics(self, topics: list[str], **kwargs: Any) -> "dict[str, Future[None]]":
        return self._each(topics, self._core.delete_topics(topics, **kwargs))

    def describe_topics(
        self, topics: TopicCollection, **kwargs: Any
    ) -> "dict[str, Future[TopicDescription]]":
        call = self._core.describe_topics(topics, **kwargs)
        return self._each(topics.topic_names, call)

    def create_partitions(
        self, new_partitions: list[NewPartitions], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        call = self._core.create_partitions(new_partitions, **kwargs)
        return self._each((each.topic for each in new_partitions), call)

    # Settings

    def describe_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[dict[str, ConfigEntry]]]":
        return self._each(resources, self._core.describe_configs(resources, **kwargs))

    def alter_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[None]]":
        warnings.warn(
            "alter_configs replaces all settings: incremental_alter_configs is safer",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._each(resources, self._core.alter_configs(resources, **kwargs))

    def incremental_alter_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[None]]":
        return self._each(resources, self._core.incremental_alter_configs(resources, **kwargs))

    def list_config_resources(self, types: Iterable[Any] = (), **kwargs: Any) -> "Future[Any]":
        return self._one(self._core.list_config_resources(types, **kwargs))

    # Groups

    def list_groups(self, group: str | None = None, timeout: float = UNSET) -> list[GroupMetadata]:
        return self._now(self._core.list_groups(group, timeout))

    def list_consumer_groups(self, **kwargs: Any) -> "Future[Any]":
        return self._one(self._core.list_consumer_groups(**kwargs))

    def describe_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[Any]]":
        return self._each(group_ids, self._core.describe_consumer_groups(group_ids, **kwargs))

    def delete_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        return self._each(group_ids, self._core.delete_consumer_groups(group_ids, **kwargs))

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: list[str] | None = None, **kwargs: Any
    ) -> "Future[Results[str, None]]":
        return self._one(
            self._core.remove_members_from_consumer_group(group_id, group_instance_ids, **kwargs)
        )

    # How calls reach the loop

    def _now(self, call: Coroutine[Any, Any, V]) -> V:
        return self._thread.run(call)

    def _one(self, call: Coroutine[Any, Any, V]) -> "Future[V]":
        return one_future(self._thread.submit(call))

    def _each(
        self, keys: Iterable[K], call: Coroutine[Any, Any, Results[K, V]]
    ) -> "dict[K, Future[V]]":
        return future_each(keys, self._thread.submit(call))


async def _begin(settings: AdminSettings, told: "queue.SimpleQueue[KafkaError]") -> AioAdminClient:
    return AioAdminClient(settings, told.put)


def _end(thread: LoopThread, core: AioAdminClient) -> None:
    thread.submit(core.close())
    thread.release()
