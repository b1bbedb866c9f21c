"""Several instances: each connector runs in one of them, also when instances come, go and die."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.connect.herder.instances import Group, Instance, group_of
from tests.wait import async_wait_until

from barnabas.connect.model import ForwardToLeaderError, State, TargetState
from barnabas.testing import Broker

NAMES = [f"c{number}" for number in range(6)]
Scenario = Callable[[Group], Coroutine[Any, Any, None]]


def with_group(broker: Broker, size: int, scenario: Scenario, **properties: str) -> None:
    async def run() -> None:
        async with group_of(broker, size, **properties) as group:
            await scenario(group)

    asyncio.run(run())


def counts(group: Group) -> list[int]:
    return sorted(len(each.running) for each in group.instances)


def moves(group: Group) -> int:
    """Returns how often a connector was started elsewhere than before."""
    return sum(len(history) - 1 for history in group.runs.history.values())


def test_connectors_are_balanced_over_instances(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [2, 2, 2], "they are balanced")
        statuses = group.instances[0].herder.instance.status_topic.state
        await group.wait_for(
            lambda: (
                {each.worker_id for each in statuses.connectors.values()}
                == {each.worker_id for each in group.instances}
            ),
            "every instance knows where each connector runs",
        )
        assert moves(group) == 0

    with_group(kafka_broker, 3, scenario)


def test_only_what_must_move_moves_to_a_new_instance(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [3, 3])
        await group.start()
        await group.wait_for(lambda: counts(group) == [2, 2, 2], "they are balanced again")
        assert moves(group) == 2

    with_group(kafka_broker, 2, scenario)


def test_a_connector_starts_elsewhere_only_when_it_has_ended(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create("a", "b")
        first = group.instances[0]
        await group.wait_for(lambda: first.running == {"a", "b"})
        first.engine.may_release.clear()
        second = await group.start()
        await group.wait_for(
            lambda: len(first.herder.instance.runner.assigned) == 1, "one is to be ended"
        )
        third = await group.start()  # further rebalances do not give it to anybody
        assert first.running == {"a", "b"}
        assert not second.running | third.running
        first.engine.may_release.set()
        await group.wait_until_all_run(["a", "b"])
        await group.wait_for(lambda: counts(group) == [0, 1, 1])

    with_group(kafka_broker, 1, scenario)


def test_the_connectors_of_an_instance_that_stops_move_at_once(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [3, 3])
        stopped = group.leader
        group.forget(stopped)
        await stopped.herder.stop()
        assert not stopped.running
        await group.wait_for(lambda: counts(group) == [6])
        assert moves(group) == 3

    with_group(kafka_broker, 2, scenario, **{"session.timeout.ms": "60000"})


@pytest.mark.parametrize("kills_leader", [True, False])
def test_the_connectors_of_a_dead_instance_move_after_its_session(
    kafka_broker: Broker, kills_leader: bool
) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [2, 2, 2])
        dead = next(each for each in group.instances if each.is_leader is kills_leader)
        lost = dead.running
        group.forget(dead)
        await dead.kill()
        await group.wait_for(lambda: counts(group) == [3, 3])
        assert moves(group) == len(lost) == 2
        living = {each.worker_id for each in group.instances}
        statuses = group.instances[0].herder.instance.status_topic.state
        await group.wait_for(
            lambda: all(
                each.state is State.RUNNING and each.worker_id in living
                for each in statuses.all_statuses()
            ),
            "their statuses are those of their new instances",
        )

    with_group(kafka_broker, 3, scenario)


def test_an_instance_that_starts_again_at_its_address_does_not_wait_for_the_session(
    kafka_broker: Broker,
) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [3, 3])
        dead = group.instances[1]
        group.forget(dead)
        await dead.kill()
        await group.start(1)
        await group.wait_until_all_run(NAMES)

    with_group(kafka_broker, 2, scenario, **{"session.timeout.ms": "60000"})


def test_an_instance_that_starts_again_runs_nothing_yet(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create("a")
        states = group.instances[0].herder.instance.status_topic.state
        await group.wait_for(lambda: len(states.tasks("a")) == 2)
        dead = group.instances[0]
        group.forget(dead)
        await dead.kill()
        starting = Instance(0, group.properties, group.runs)
        starting.engine.may_start.clear()
        group.instances.append(starting)
        await starting.herder.start()
        read = starting.herder.instance.status_topic.state
        await group.wait_for(
            lambda: (
                {each.state for each in [read.connectors["a"], *read.tasks("a").values()]}
                == {State.UNASSIGNED}
            )
        )
        starting.engine.may_start.set()
        await group.wait_for(lambda: read.connectors["a"].state is State.RUNNING)

    with_group(kafka_broker, 1, scenario)


def test_a_connector_moves_from_an_instance_that_has_not_started_it(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_until_all_run(NAMES)
        dead = group.instances[0]
        group.forget(dead)
        await dead.kill()
        starting = Instance(0, group.properties, group.runs)
        starting.engine.may_start.clear()
        group.instances.append(starting)
        await starting.herder.start()
        await group.wait_for(
            lambda: starting.herder.instance.runner.assigned == set(NAMES), "it has all"
        )
        other = await group.start(1)
        await group.wait_for(lambda: len(other.running) == len(NAMES) // 2, "it has half of them")
        starting.engine.may_start.set()
        await group.wait_until_all_run(NAMES)
        assert counts(group) == [3, 3]

    with_group(kafka_broker, 1, scenario)


def test_until_the_delay_has_passed_the_connectors_of_a_lost_instance_wait(
    kafka_broker: Broker,
) -> None:
    async def scenario(group: Group) -> None:
        await group.create("a", "b")
        await group.wait_for(lambda: counts(group) == [1, 1])
        stopped = next(each for each in group.instances if not each.is_leader)
        group.forget(stopped)
        await stopped.herder.stop()
        remaining = group.instances[0].herder.instance
        await group.wait_for(
            lambda: (
                remaining.group.current is not None and len(remaining.group.current.group.urls) == 1
            )
        )
        statuses = remaining.status_topic.state
        await group.wait_for(
            lambda: (
                sorted(each.state for each in statuses.connectors.values())
                == [State.RUNNING, State.UNASSIGNED]
            ),
            "the other one waits",
        )
        assert counts(group) == [1]
        await group.wait_for(lambda: counts(group) == [2], "it is started after the delay")

    with_group(kafka_broker, 2, scenario, **{"scheduled.rebalance.max.delay.ms": "700"})


def test_followers_name_the_leader_and_the_owner(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create("a", "b")
        await group.wait_for(lambda: counts(group) == [1, 1])
        leader = group.leader
        follower = next(each for each in group.instances if each is not leader)
        (of_leader,) = leader.running
        for request in (
            follower.herder.put_config("x", {"name": "x"}, may_exist=False),
            follower.herder.patch_config("a", {}),
            follower.herder.delete("a"),
            follower.herder.set_target_state("a", TargetState.PAUSED),
            follower.herder.restart("a", include_tasks=True, only_failed=False),
            follower.herder.alter_offsets("a", None),
            follower.herder.restart_task(of_leader, 0),
        ):
            with pytest.raises(ForwardToLeaderError) as raised:
                await request
            assert raised.value.leader_url == leader.url
        assert await follower.herder.connectors() == ["a", "b"]

    with_group(kafka_broker, 2, scenario)


def test_restarts_and_target_states_reach_the_owner(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        await group.create("a", "b")
        await group.wait_for(lambda: counts(group) == [1, 1])
        leader = group.leader
        follower = next(each for each in group.instances if each is not leader)
        (name,) = follower.running
        statuses = leader.herder.instance.status_topic.state
        await group.wait_for(lambda: len(statuses.tasks(name)) == 2)
        await leader.herder.restart(name, include_tasks=True, only_failed=False)
        expected = ("restart", name, True, [0, 1])
        await group.wait_for(lambda: expected in follower.engine.calls)
        await leader.herder.set_target_state(name, TargetState.PAUSED)
        await group.wait_for(lambda: statuses.connectors[name].state is State.PAUSED)
        await leader.herder.delete(name)
        await group.wait_for(lambda: not follower.running)

    with_group(kafka_broker, 2, scenario)


def test_a_former_leader_cannot_write(kafka_broker: Broker) -> None:
    """It was paused, and does not know that another one has taken over."""

    async def scenario(group: Group) -> None:
        await group.create("a")
        leader = group.leader
        other = next(each for each in group.instances if each is not leader)
        await other.herder.instance.config_topic.become_leader()
        with pytest.raises(Exception, match="conflicting operation") as raised:
            await leader.herder.delete("a")
        assert getattr(raised.value, "status", 0) == 409
        assert await leader.herder.connectors() == ["a"]
        await leader.herder.delete("a")  # it is the leader, and has fenced the other one now
        await async_wait_until(lambda: not other.herder.instance.config_topic.state.connectors)

    with_group(kafka_broker, 2, scenario)


def test_an_instance_that_is_cut_off_ends_its_connectors_before_others_start_them(
    fresh_kafka_broker: Broker,
) -> None:
    """Its requests do not reach the coordinator: others wait for the end of its session."""

    async def scenario(group: Group) -> None:
        await group.create(*NAMES)
        await group.wait_for(lambda: counts(group) == [3, 3])
        cut_off = next(each for each in group.instances if not each.is_leader)
        is_cut_off = True
        send = cut_off.herder.instance.group._membership._send_request

        async def send_unless_cut_off(request: Any, timeout_ms: int) -> Any:
            while is_cut_off:
                await asyncio.sleep(0.01)
            return await send(request, timeout_ms)

        cut_off.herder.instance.group._membership._send_request = _with_timeout(send_unless_cut_off)
        rest = next(each for each in group.instances if each is not cut_off)
        await group.wait_for(lambda: not cut_off.running, "it has ended them")
        await group.wait_for(lambda: len(rest.running) == 6, "the other one has them")
        is_cut_off = False
        await group.wait_for(lambda: counts(group) == [3, 3], "it has come back")

    with_group(fresh_kafka_broker, 2, scenario)


def _with_timeout(send: Any) -> Any:
    from barnabas.client.errors import KafkaError, KafkaException

    async def bounded(request: Any, timeout_ms: int) -> Any:
        try:
            return await asyncio.wait_for(send(request, timeout_ms), timeout_ms / 1000)
        except TimeoutError:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    return bounded


def test_instances_come_and_go_and_no_connector_ever_runs_twice(kafka_broker: Broker) -> None:
    async def scenario(group: Group) -> None:
        names = [f"c{number}" for number in range(10)]
        creating = asyncio.create_task(_create_slowly(group, names))
        for _ in range(2):
            await group.start()
            await asyncio.sleep(0)
            leaving = group.instances[0]
            if leaving.is_leader and not creating.done():
                await creating
            group.forget(leaving)
            await leaving.herder.stop()
        await creating
        await group.wait_until_all_run(names)
        await group.wait_for(lambda: counts(group) == [5, 5])

    with_group(kafka_broker, 2, scenario)


async def _create_slowly(group: Group, names: list[str]) -> None:
    for name in names:
        await _create(group, name)


async def _create(group: Group, name: str) -> None:
    """Creates a connector through whichever instance leads now."""
    while True:
        for instance in list(group.instances):
            try:
                await _put(instance, name)
                return
            except Exception:
                continue
        await asyncio.sleep(0.01)


async def _put(instance: Instance, name: str) -> None:
    await instance.herder.put_config(name, {"name": name, "connector.class": "x"}, may_exist=True)
