"""All that one partition of `__consumer_offsets` keeps: groups, and the offsets they committed."""

from typing import Any, Protocol

from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.shard import Shard
from barnabas.coordinator.timers import Timers
from barnabas.metadata.image import Image


class GroupSettings(Protocol):
    """Settings in force, as the broker's Resolver finds them."""

    def broker(self, name: str) -> Any: ...

    def group(self, group_name: str) -> Any:
        """The settings of one group by name."""


class Groups:
    """The state machine of one shard. What each request decides is in the modules beside."""

    def __init__(self, shard: "Shard[Groups]", settings: GroupSettings, image: Image) -> None:
        self.shard = shard
        self.settings = settings
        self.image = image
        self.groups: dict[str, Group] = {}

    @property
    def timers(self) -> Timers:
        return self.shard.timers

    def now_ms(self) -> int:
        return self.shard.now_ms()
