"""The status topic: the states of connectors and tasks, and the topics that connectors use.

    status-connector-N           {"state", "trace", "worker_id", "generation"}
    status-task-N-0              the same
    status-topic-T:connector-N   {"topic": {"name", "connector", "task", "discoverTimestamp"}}

Each instance writes the states of what it runs. Without a value, the state is removed.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from barnabas.client._message import Message
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.connect.model import State, Status
from barnabas.connect.storage.config_state import MAX_TASK_DIGITS
from barnabas.connect.storage.topic_log import KeyAndValue, TopicLog, json_record

_log = logging.getLogger(__name__)
_CONTENT = "the states of connectors"
_CONNECTOR = "status-connector-"
_TASK = "status-task-"
_TOPIC = "status-topic-"
_OF_CONNECTOR = ":connector-"


class StatusTopic:
    """Lives on one event loop. `start` must have returned before anything else is called."""

    def __init__(
        self,
        topic: str,
        client_config: Mapping[str, Any],
        *,
        partitions: int = 5,
        replication_factor: int = 3,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        description = CompactedTopic(
            topic,
            _CONTENT,
            partitions,
            replication_factor=replication_factor,
            configs=topic_configs or {},
        )
        self.state = StatusState()
        self._log = TopicLog(description, client_config, self._apply)

    @property
    def topic(self) -> str:
        return self._log.topic

    async def start(self) -> None:
        """Creates the topic if there is none. Returns when it has been read to its end."""
        await self._log.start()

    async def stop(self) -> None:
        await self._log.stop()

    async def read_to_end(self) -> None:
        await self._log.read_to_end()

    async def append(self, *records: KeyAndValue) -> None:
        """Returns when the records can be read back. Raises KafkaException."""
        await self._log.append(records)

    def _apply(self, message: Message) -> None:
        key = (message.key() or b"").decode(errors="replace")
        try:
            self.state.apply(key, message.value())
        except UnreadableStatusError as error:
            _log.warning(
                "skipped a record of topic %s, partition %s, offset %s: %s",
                self.topic,
                message.partition(),
                message.offset(),
                error,
            )


class UnreadableStatusError(Exception):
    """A record of the topic is not in Connect's format."""


class StatusState:
    """Changed only by `apply`."""

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, set[str]] = {}

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Returns the states of the tasks by their numbers, in order."""
        return dict(sorted(self._tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> set[str]:
        return set(self._topics.get(connector, ()))

    def all_statuses(self) -> list[Status]:
        """Returns the statuses of all connectors and tasks."""
        tasks = (status for each in self._tasks.values() for status in each.values())
        return [*self.connectors.values(), *tasks]

    def names(self) -> set[str]:
        """Returns the connectors that anything is stored of."""
        return {*self.connectors, *self._tasks, *self._topics}

    def apply(self, key: str, value: bytes | None) -> None:
        if key.startswith(_CONNECTOR):
            _put(self.connectors, key.removeprefix(_CONNECTOR), _parse_status(value))
        elif key.startswith(_TASK):
            name, task = _split_task(key.removeprefix(_TASK))
            _put(self._tasks.setdefault(name, {}), task, _parse_status(value))
            if not self._tasks[name]:
                del self._tasks[name]
        elif key.startswith(_TOPIC) and _OF_CONNECTOR in key:
            topic, _, name = key.removeprefix(_TOPIC).partition(_OF_CONNECTOR)
            topics = self._topics.setdefault(name, set())
            if value is None:
                topics.discard(topic)
            else:
                topics.add(topic)
            if not topics:
                del self._topics[name]
        else:
            raise UnreadableStatusError(f"the key {key!r} is unknown")


def _put(statuses: dict[Any, Status], key: object, status: Status | None) -> None:
    if status is None:
        statuses.pop(key, None)
        return
    known = statuses.get(key)
    # A worker that gives up a connector late must not hide that another already runs it.
    is_late = (
        status.state is State.UNASSIGNED
        and known is not None
        and known.state is State.RUNNING
        and known.generation >= status.generation
        and known.worker_id != status.worker_id
    )
    if not is_late:
        statuses[key] = status


def _split_task(text: str) -> tuple[str, int]:
    name, _, task = text.rpartition("-")
    if not name or not task.isdecimal() or len(task) > MAX_TASK_DIGITS:
        raise UnreadableStatusError(f"status-task-{text} does not end with the number of a task")
    return name, int(task)


def _parse_status(value: bytes | None) -> Status | None:
    if value is None:
        return None
    try:
        content = json.loads(value)
        return Status(
            State(content["state"]),
            content["worker_id"],
            content.get("trace") or None,
            int(content["generation"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableStatusError(f"the value is no status: {error!r}") from None


# Records


def connector_status_record(name: str, status: Status | None) -> KeyAndValue:
    return _status_record(_CONNECTOR + name, status)


def task_status_record(name: str, task: int, status: Status | None) -> KeyAndValue:
    return _status_record(f"{_TASK}{name}-{task}", status)


def topic_record(name: str, topic: str, task: int, discovered_ms: int | None) -> KeyAndValue:
    """A topic that a connector uses; a time of None removes it."""
    key = f"{_TOPIC}{topic}{_OF_CONNECTOR}{name}"
    if discovered_ms is None:
        return key.encode(), None
    described = {
        "name": topic,
        "connector": name,
        "task": task,
        "discoverTimestamp": discovered_ms,
    }
    return json_record(key, {"topic": described})


def _status_record(key: str, status: Status | None) -> KeyAndValue:
    if status is None:
        return key.encode(), None
    return json_record(
        key,
        {
            "state": status.state,
            "trace": status.trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
        },
    )
