"""ISR changes to the controller: all partitions together, one request at a time."""

import pytest
from tests.replication.cluster import run_callbacks
from tests.replication.world import World, id_of, registration

from barnabas.replication import alter_partition_manager
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)


@pytest.fixture
def led(world: World) -> World:
    """Broker 1 leads three partitions alone that 2 has replicas of."""
    world.metadata(registration(2))
    world.create_topic("orders", 3, replicas=(1, 2), isr=(1,))
    return world


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alter_partition_manager, "RETRY_S", 0)


def catch_up(world: World, *indexes: int) -> None:
    """Broker 2 shows that it has everything."""
    for index in indexes:
        world.partition("orders", index).fetch_as_follower(
            2, 5, 0, 99, log_start_offset=0, now_ms=world.now_ms
        )


def sent_partitions(world: World) -> list[list[int]]:
    """The indexes in each request that was sent, in order."""
    return [
        [requested.partition_index for topic in request.topics for requested in topic.partitions]
        for request, _ in world.controller_requests
    ]


def response(world: World, **codes: int) -> None:
    """The controller agrees to the latest request, but for partitions with a code of their own."""
    request, waiting = world.controller_requests[-1]
    waiting.set_result(agreed(request, codes))
    run_callbacks()


def agreed(request: AlterPartitionRequest, codes: dict[str, int]) -> AlterPartitionResponse:
    (topic,) = request.topics
    outcomes = [
        ResponsePartitionData(
            partition_index=requested.partition_index,
            error_code=codes.get(f"p{requested.partition_index}", ErrorCode.NONE),
            leader_id=1,
            leader_epoch=requested.leader_epoch,
            isr=[each.broker_id for each in requested.new_isr_with_epochs],
            partition_epoch=requested.partition_epoch + 1,
        )
        for requested in topic.partitions
    ]
    return AlterPartitionResponse(
        topics=[ResponseTopicData(topic_id=id_of("orders"), partitions=outcomes)]
    )


def in_sync(world: World, index: int) -> tuple[int, ...]:
    state = world.partition("orders", index).state
    assert state is not None
    return state.isr


def test_changes_during_a_request_are_sent_in_the_next(led: World) -> None:
    catch_up(led, 0, 1, 2)
    assert sent_partitions(led) == [[0]]
    response(led)
    assert sent_partitions(led) == [[0], [1, 2]]
    response(led)
    assert [in_sync(led, index) for index in range(3)] == [(1, 2)] * 3
    assert len(led.controller_requests) == 2


def test_the_controllers_response_is_applied_before_the_metadata_arrives(led: World) -> None:
    catch_up(led, 0)
    response(led)
    assert in_sync(led, 0) == (1, 2)
    assert led.partition("orders").is_in_sync(2)


def test_a_retriable_rejection_is_sent_again_with_newer_changes(led: World) -> None:
    catch_up(led, 0, 1)
    response(led, p0=ErrorCode.NOT_CONTROLLER)
    assert sent_partitions(led) == [[0], [1, 0]]


def test_a_change_that_the_metadata_has_overtaken_is_not_sent_again(led: World) -> None:
    catch_up(led, 0)
    led.lead("orders", isr=(1,))
    response(led, p0=ErrorCode.NOT_CONTROLLER)
    assert len(led.controller_requests) == 1


@pytest.mark.parametrize("failure", [ConnectionResetError(), TimeoutError()])
def test_a_change_is_sent_again_if_the_controller_cannot_be_reached(
    led: World, failure: OSError
) -> None:
    catch_up(led, 0)
    led.controller_requests[0][1].set_exception(failure)
    run_callbacks()
    assert sent_partitions(led) == [[0], [0]]


def test_an_error_of_the_whole_request_changes_nothing_and_is_retried(led: World) -> None:
    catch_up(led, 0)
    error = AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    led.controller_requests[0][1].set_result(error)
    run_callbacks()
    assert sent_partitions(led) == [[0], [0]]
    assert in_sync(led, 0) == (1,)


def test_a_partition_missing_in_the_response_is_sent_again(led: World) -> None:
    catch_up(led, 0)
    led.controller_requests[0][1].set_result(AlterPartitionResponse())
    run_callbacks()
    assert sent_partitions(led) == [[0], [0]]


def test_the_isr_shrinks_where_this_broker_leads(led: World) -> None:
    led.lead("orders", 0, isr=(1, 2))
    led.lead("orders", 1, leader=2, isr=(1, 2))
    for index in range(2):
        led.partition("orders", index)
    led.append("orders", b"a")
    led.run_maintenance(for_ms=60_000)
    assert sent_partitions(led) == [[0]]
    (requested,) = led.controller_requests[0][0].topics[0].partitions
    assert [each.broker_id for each in requested.new_isr_with_epochs] == [1]
