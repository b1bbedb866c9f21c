"""Runs the connectors that are assigned to this instance, as they should be now.

Each connector has one task at a time, which brings the engine from what it runs to what is wanted.
Changes meanwhile are seen when the step is done, and only the latest one is applied.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.connect.model import ConnectorEngine, TargetState
from barnabas.connect.storage.config_state import ConfigState

_log = logging.getLogger(__name__)
_RELEASE_RETRY_S = 1.0


@dataclass(slots=True, frozen=True)
class DesiredConnector:
    """What should run: the settings, with their references as stored, and the target state."""

    config: Mapping[str, str]
    target: TargetState


class RunnerEvents(Protocol):
    """What the herder does about connectors that start or end here."""

    def resolve_config(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Replaces references to config providers. Raises RequestFailed."""
        ...

    def on_not_started(self, name: str, trace: str) -> None:
        """The connector could not be started."""
        ...

    def on_released(self, name: str) -> None:
        """This instance writes nothing for the connector any more."""
        ...


@dataclass(slots=True)
class _Slot:
    """The task of one connector, and what it has applied."""

    task: asyncio.Task[None] | None = None
    has_changed: bool = False
    applied: DesiredConnector | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    """The settings that the engine has got, before references were resolved."""
    resolved: Mapping[str, str] = field(default_factory=dict)
    restarts: list[tuple[bool, Sequence[int]]] = field(default_factory=list)


class ConnectorRunner:
    """Lives on one event loop. Applies nothing before `open`."""

    def __init__(
        self, engine: ConnectorEngine, config: Callable[[], ConfigState], events: RunnerEvents
    ) -> None:
        self._engine = engine
        self._config = config
        self._events = events
        self._slots: dict[str, _Slot] = {}
        self._running: set[str] = set()
        self._assigned: frozenset[str] = frozenset()
        self._is_open = False

    @property
    def running(self) -> frozenset[str]:
        """The connectors that the engine may write for."""
        return frozenset(self._running)

    @property
    def assigned(self) -> frozenset[str]:
        return self._assigned

    def open(self) -> None:
        """The engine has started."""
        self._is_open = True
        for name in self._assigned:
            self.on_changed(name)

    def set_assigned(self, names: frozenset[str]) -> None:
        """Starts what is assigned here now, and ends what is not any more."""
        changed = self._assigned ^ names
        self._assigned = names
        for name in changed | self._running:
            self.on_changed(name)

    def on_changed(self, name: str, *, is_rewritten: bool = False) -> None:
        """The target state has changed, or the connector was written again or removed."""
        if name not in self._assigned and name not in self._running:
            return
        if is_rewritten and name in self._slots:
            self._slots[name].applied = None
        self._start_task(name)

    def restart(self, name: str, *, connector: bool, tasks: Sequence[int]) -> None:
        """Restarts parts of a connector that runs here."""
        if name in self._running:
            self._slots[name].restarts.append((connector, tasks))
            self._start_task(name)

    def with_references(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """Returns settings of a task with the references of the connector's settings, so that no
        value of a config provider is stored."""
        slot = self._slots.get(name)
        if slot is None:
            return dict(config)
        return {
            setting: slot.given[setting]
            if setting in slot.given and slot.resolved.get(setting) == value
            else value
            for setting, value in config.items()
        }

    async def stop(self) -> None:
        """Ends everything."""
        self.set_assigned(frozenset())
        tasks = [slot.task for slot in self._slots.values() if slot.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_task(self, name: str) -> None:
        slot = self._slots.setdefault(name, _Slot())
        slot.has_changed = True
        if slot.task is None and self._is_open:
            slot.task = asyncio.create_task(self._run(name, slot))

    async def _run(self, name: str, slot: _Slot) -> None:
        try:
            while slot.has_changed:
                slot.has_changed = False
                await self._step(name, slot)
        except Exception:
            _log.exception("connector %s cannot be managed", name)
        finally:
            slot.task = None
            if name not in self._running and name not in self._assigned:
                self._slots.pop(name, None)

    async def _step(self, name: str, slot: _Slot) -> None:
        desired = self._desired(name)
        if desired is None:
            await self._release(name, slot)
            return
        if desired != slot.applied:
            slot.restarts.clear()
            await self._apply(name, slot, desired)
        while slot.restarts:
            connector, tasks = slot.restarts.pop(0)
            if desired.target is not TargetState.STARTED:
                continue  # it stays paused or stopped
            await self._engine.restart(name, connector=connector, tasks=tasks)

    def _desired(self, name: str) -> DesiredConnector | None:
        state = self._config()
        config = state.connectors.get(name)
        if name not in self._assigned or config is None:
            return None
        return DesiredConnector(config, state.target_state(name))

    async def _apply(self, name: str, slot: _Slot, desired: DesiredConnector) -> None:
        self._running.add(name)  # first: from now on the engine may write
        try:
            resolved = await asyncio.to_thread(self._events.resolve_config, desired.config)
            slot.given, slot.resolved = desired.config, resolved
            await self._engine.run_connector(name, resolved, desired.target)
            slot.applied = desired
        except Exception as error:
            slot.applied = None  # a restart tries again
            _log.error("connector %s cannot be started: %s", name, error)
            self._events.on_not_started(name, traceback.format_exc())

    async def _release(self, name: str, slot: _Slot) -> None:
        """Ends the connector. An error is repeated: nobody may run it before it has ended."""
        if name not in self._running:
            return
        while True:
            try:
                await self._engine.release_connector(name)
                break
            except Exception:
                _log.exception("connector %s cannot be ended; trying again", name)
                await asyncio.sleep(_RELEASE_RETRY_S)
        slot.applied = None
        slot.restarts.clear()
        self._running.discard(name)
        self._events.on_released(name)
