"""The statuses that this instance stores: of what it runs, and of what nobody runs any more."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from barnabas.connect.herder.status_writer import StatusWriter
from barnabas.connect.model import State, Status
from barnabas.connect.storage.status_topic import (
    StatusState,
    connector_status_record,
    task_status_record,
    topic_record,
)
from barnabas.connect.storage.topic_log import KeyAndValue

_TASK = 0
"""All tasks of a connector use its topics: they are stored as those of the first one."""


class InstanceStatuses:
    """Lives on one event loop."""

    def __init__(self, state: StatusState, writer: StatusWriter, worker_id: str) -> None:
        self._state = state
        self._writer = writer
        self._worker_id = worker_id
        self._own_topics: set[tuple[str, str]] = set()
        self._generation = 0
        self._first_generation = 0

    def start(self) -> None:
        """The topic was read: new generations follow the stored ones, also in a new group.

        What ran in an earlier process at this address does not run any more.
        """
        stored = list(self._state.all_statuses())
        self._first_generation = max((status.generation for status in stored), default=0)
        others = {status.worker_id for status in stored} - {self._worker_id}
        self.replace_lost(self._state.names(), others)

    def set_generation(self, generation: int) -> None:
        self._generation = max(generation, self._first_generation)

    # What runs here

    def put_connector(self, name: str, state: State, trace: str | None) -> None:
        self._writer.write(connector_status_record(name, self._status(state, trace)))

    def put_task(self, name: str, task: int, state: State, trace: str | None) -> None:
        self._writer.write(task_status_record(name, task, self._status(state, trace)))

    def put_unassigned(self, name: str, tasks: int) -> None:
        """This instance has ended a connector, which exists."""
        self.put_connector(name, State.UNASSIGNED, None)
        for task in range(tasks):
            self.put_task(name, task, State.UNASSIGNED, None)

    def remove_tasks(self, name: str, first: int) -> None:
        """Removes the tasks from a number on: the connector has fewer than before."""
        for task in self._state.tasks(name):
            if task >= first:
                self._writer.write(task_status_record(name, task, None))

    def put_topic(self, name: str, topic: str) -> None:
        if (name, topic) in self._own_topics or topic in self._state.topics(name):
            return
        self._own_topics.add((name, topic))
        self._writer.write(topic_record(name, topic, _TASK, int(time.time() * 1000)))

    # What does not run

    def remove(self, name: str) -> None:
        """Removes everything of a connector that does not exist any more."""
        self._own_topics = {each for each in self._own_topics if each[0] != name}
        self.remove_tasks(name, 0)
        self._writer.write(*self._topic_removals(name))
        self._writer.write(connector_status_record(name, None))

    def remove_topics(self, name: str) -> None:
        self._own_topics = {each for each in self._own_topics if each[0] != name}
        self._writer.write(*self._topic_removals(name))

    def replace_lost(self, names: Collection[str], living: Collection[str]) -> None:
        """What an instance ran that is gone is UNASSIGNED until another one runs it.

        `living` are the instances of the group, by their worker ids.
        """
        for name in names:
            connector = self._state.connectors.get(name)
            if connector is not None and _is_lost(connector, living):
                self._writer.write(connector_status_record(name, _unassigned(connector)))
            for task, status in self._state.tasks(name).items():
                if _is_lost(status, living):
                    self._writer.write(task_status_record(name, task, _unassigned(status)))

    def remove_others(self, names: Collection[str]) -> None:
        """Removes everything of connectors that are not among these."""
        for name in self._state.names() - set(names):
            self.remove(name)

    def _topic_removals(self, name: str) -> list[KeyAndValue]:
        return [
            topic_record(name, topic, _TASK, None) for topic in sorted(self._state.topics(name))
        ]

    def _status(self, state: State, trace: str | None) -> Status:
        return Status(state, self._worker_id, trace, self._generation)


def planned_restart(
    connector: Status, tasks: Mapping[int, Status], *, include_tasks: bool, only_failed: bool
) -> tuple[bool, list[int]]:
    """Returns whether to restart the connector, and which of its tasks."""
    restarts_connector = not only_failed or connector.state is State.FAILED
    restarted = [
        task
        for task, status in tasks.items()
        if include_tasks and (not only_failed or status.state is State.FAILED)
    ]
    return restarts_connector, restarted


def _is_lost(status: Status, living: Collection[str]) -> bool:
    return status.worker_id not in living and status.state is not State.UNASSIGNED


def _unassigned(status: Status) -> Status:
    """Keeps the worker, so that readers know that it is not about the one that runs it now."""
    return replace(status, state=State.UNASSIGNED, trace=None)
