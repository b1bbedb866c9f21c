"""What the client of a fetch may read."""

from abc import ABC, abstractmethod

from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.server.fetching.fetch_session import FIRST_VERSION_WITH_TOPIC_IDS, SessionPartition
from barnabas.server.request_context import RequestContext


class FetchPermissions(ABC):
    """The permissions of one fetch."""

    @abstractmethod
    def allow(self, requested: SessionPartition) -> bool:
        """Returns whether the client may read a partition, or its topic does not exist."""


class ConsumerPermissions(FetchPermissions):
    """A consumer needs READ on every topic, which is checked once."""

    __slots__ = ("_by_id", "_by_name", "_context")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._by_name: dict[str, bool] = {}

    def allow(self, requested: SessionPartition) -> bool:
        name = requested.topic
        if self._by_id:
            topic = self._context.broker.image.topics.by_id(requested.topic_id)
            if topic is None:
                return True
            name = topic.name
        is_allowed = self._by_name.get(name)
        if is_allowed is None:
            is_allowed = self._context.is_allowed(AclOperation.READ, topic_resource(name))
            self._by_name[name] = is_allowed
        return is_allowed


class FollowerPermissions(FetchPermissions):
    """A broker needs CLUSTER_ACTION, and reads everything."""

    __slots__ = ("_is_broker",)

    def __init__(self, context: RequestContext) -> None:
        self._is_broker = context.is_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)

    def allow(self, requested: SessionPartition) -> bool:
        return self._is_broker
