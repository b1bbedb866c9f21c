"""Connectors that are stopped while they wake up."""

from __future__ import annotations

import asyncio

import pytest
from tests.connect.execution.instance import Instance, new_world, run, source_config

from barnabas.connect.execution.source_work import SourceWork
from barnabas.connect.model import State
from barnabas.testing import Broker


@pytest.mark.parametrize("turns", range(8))
def test_a_source_that_is_woken_as_it_is_stopped_ends(kafka_broker: Broker, turns: int) -> None:
    """`turns` of the event loop are between the stop and the event that wakes it."""
    world, _ = new_world(a=["1"])

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("src", source_config(world))
            await instance.until_task("src", State.RUNNING)
            work = instance.engine._runs["src"]._work  # type: ignore[union-attr]
            assert isinstance(work, SourceWork)
            await instance.until(lambda: work._wake._waiters, "it waits for something to do")
            release = asyncio.create_task(instance.engine.release_connector("src"))
            for _ in range(turns):
                await asyncio.sleep(0)
            work._wake.set()
            await asyncio.wait_for(release, 5)

    run(scenario())
