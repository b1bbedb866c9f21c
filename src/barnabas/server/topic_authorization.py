"""Separates the topics of a request that its client may use from the others."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from barnabas.security.authorizer.model import AclOperation, topic_resource
from barnabas.server.request_context import RequestContext


class NamedTopic(Protocol):
    """A topic of a request."""

    name: str


class IdentifiedTopic(Protocol):
    """A topic of a request in a version that has names or ids."""

    name: str
    topic_id: bytes


N = TypeVar("N", bound=NamedTopic)
T = TypeVar("T", bound=IdentifiedTopic)


def split_by_permission(
    topics: Iterable[N], operation: AclOperation, context: RequestContext
) -> tuple[list[N], list[N]]:
    """Returns the topics that the client may use, and those that it may not use."""
    allowed: list[N] = []
    rejected: list[N] = []
    for topic in topics:
        is_allowed = context.is_allowed(operation, topic_resource(topic.name))
        (allowed if is_allowed else rejected).append(topic)
    return allowed, rejected


def split_ids_by_permission(
    topics: Iterable[T], operation: AclOperation, context: RequestContext
) -> tuple[list[T], list[T]]:
    """Does the same for topics by their ids. The first list has those that do not exist, too."""
    allowed: list[T] = []
    rejected: list[T] = []
    by_id = context.broker.image.topics.by_id
    for topic in topics:
        existing = by_id(topic.topic_id)
        is_allowed = existing is None or context.is_allowed(
            operation, topic_resource(existing.name)
        )
        (allowed if is_allowed else rejected).append(topic)
    return allowed, rejected
