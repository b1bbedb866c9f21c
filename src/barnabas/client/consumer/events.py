"""What the loop wants of the user's thread: that his callbacks are called there."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from barnabas.client.values import TopicPartitionTuple


class Change(Enum):
    """What happens to partitions when a group is rebalanced."""

    ASSIGNED = auto()
    REVOKED = auto()
    LOST = auto()


@dataclass(slots=True)
class Rebalance:
    """Partitions come or go. The group waits until the user has been asked."""

    change: Change
    partitions: tuple[TopicPartitionTuple, ...]
    is_incremental: bool
    done: "asyncio.Future[None]"
    is_applied: bool = False  # by the user himself, in his callback


@dataclass(slots=True, frozen=True)
class Call:
    """A callback and what to call it with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
