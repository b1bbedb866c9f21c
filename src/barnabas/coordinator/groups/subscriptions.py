"""Who subscribes to a topic: so a change of topics is told to those it concerns, and no others."""


class Subscriptions:
    """The topics that the consumer groups of a shard subscribe to, found by their names."""

    __slots__ = ("_groups_by_topic", "new_topics_offset")

    def __init__(self, new_topics_offset: int = -1) -> None:
        self._groups_by_topic: dict[str, set[str]] = {}
        self.new_topics_offset = new_topics_offset
        """The offset of the image that last brought new topics: regular expressions that were
        held against an older one may stand for more topics now."""

    def of(self, topic: str) -> set[str]:
        """Ids of the groups that subscribe to a topic, whether it exists or not."""
        return self._groups_by_topic.get(topic, set())

    def add(self, topic: str, group_id: str) -> None:
        self._groups_by_topic.setdefault(topic, set()).add(group_id)

    def remove(self, topic: str, group_id: str) -> None:
        groups = self._groups_by_topic.get(topic)
        if groups is not None:
            groups.discard(group_id)
            if not groups:
                del self._groups_by_topic[topic]
