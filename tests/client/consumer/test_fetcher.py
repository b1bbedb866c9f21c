"""The fetcher fetches from the right node as far as there is space, and handles responses."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.wait import async_wait_until
from tests.wire.records.samples import some_records

from barnabas.client.cluster import BrokerInfo, MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import AioFetchBuffer
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.subscription_state import (
    AutoOffsetResetStrategy,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.consumer.user_events import UserEvents
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.leaders import LeaderIdAndEpoch
from barnabas.wire.records.build import build_batch

ID = b"t" * 16


class Brokers:
    """A fake cluster: it keeps requests until the test responds to them."""

    def __init__(self, leaders: dict[int, int]) -> None:
        partitions = tuple(PartitionInfo(index, node, 5) for index, node in leaders.items())
        self.metadata = MetadataSnapshot(
            brokers={node: BrokerInfo(node, "h", node) for node in (1, 2, 3)},
            topics={"t": TopicInfo("t", ID, partitions)},
        )
        self.requests: list[tuple[int, str, FetchRequest, Callable[[Any], None]]] = []
        self.refreshes = 0

    def send(
        self,
        node_id: int,
        request: FetchRequest,
        timeout_ms: int,
        on_response: Callable[[Any], None],
        *,
        purpose: str,
    ) -> None:
        self.requests.append((node_id, purpose, request, on_response))

    def refresh(self) -> None:
        self.refreshes += 1

    def respond(self, *partitions: PartitionData, session_id: int = 9, error: int = 0) -> None:
        """Responds to the oldest request."""
        *_, on_response = self.requests.pop(0)
        topic = FetchableTopicResponse(topic_id=ID, partitions=list(partitions))
        on_response(FetchResponse(session_id=session_id, error_code=error, responses=[topic]))


class Scene:
    """A fetcher with partitions of one topic."""

    def __init__(self, leaders: dict[int, int], **settings: Any) -> None:
        self.settings = ConsumerSettings(retry_backoff_ms=1, retry_backoff_max_ms=2, **settings)
        self.brokers = Brokers(leaders)
        self.assignment: dict[PartitionKey, TopicPartitionState] = {}
        self.buffer = AioFetchBuffer(Poller())
        self.unknown_positions = 0
        self.fetcher = Fetcher(
            self.brokers,  # type: ignore[arg-type]
            self.settings,
            self.assignment,
            self.buffer,
            on_position_unknown=self.on_position_unknown,
            error_to_report=UserEvents(self.settings, self.buffer).error_to_report,
            on_throttled=lambda node_id, throttle_ms: None,
        )
        for index in leaders:
            each = TopicPartitionState("t", index, AutoOffsetResetStrategy("earliest"))
            each.seek(0)
            self.assignment["t", index] = each

    def on_position_unknown(self) -> None:
        self.unknown_positions += 1

    def offsets(self, position: int = -1) -> list[tuple[int, int]]:
        """Returns the partitions and offsets of a request."""
        topics = self.brokers.requests[position][2].topics
        return [(each.partition, each.fetch_offset) for one in topics for each in one.partitions]

    def errors(self) -> list[KafkaError | None]:
        return [each.error() for each in iter(self.buffer.next_message, None)]


def records(partition: int, base_offset: int, count: int = 3, **more: Any) -> PartitionData:
    batch = build_batch(some_records(count), base_offset=base_offset, leader_epoch=5)
    return PartitionData(
        partition_index=partition,
        high_watermark=100,
        last_stable_offset=100,
        records=memoryview(bytes(batch)),
        **more,
    )


def failed(partition: int, code: ErrorCode, **more: Any) -> PartitionData:
    return PartitionData(partition_index=partition, error_code=code, **more)


def stepped(
    leaders: dict[int, int], **settings: Any
) -> Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Runs a test on a loop, with a scene."""

    def decorate(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def run() -> None:
            await test(Scene(leaders, **settings))

        def test_runs() -> None:
            asyncio.run(run())

        test_runs.__name__ = test.__name__
        return test_runs

    return decorate


@stepped({0: 1, 1: 2, 2: 1})
async def test_each_broker_gets_one_fetch_for_the_partitions_it_leads(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.fetcher.send_fetches()
    assert [(node, purpose) for node, purpose, *_ in scene.brokers.requests] == [
        (1, "fetch"),
        (2, "fetch"),
    ]
    assert scene.offsets(0) == [(0, 0), (2, 0)]
    assert scene.offsets(1) == [(1, 0)]


@stepped({0: 1})
async def test_the_next_fetch_continues_after_the_last_batch(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(records(0, 0))
    assert scene.offsets() == [(0, 3)]
    assert [each.offset() for each in iter(scene.buffer.next_message, None)] == [0, 1, 2]


@stepped({0: 1})
async def test_a_sought_partition_is_fetched_at_once_on_another_connection(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.assignment["t", 0].seek(50)
    scene.fetcher.send_fetches()
    assert [purpose for _, purpose, *_ in scene.brokers.requests] == ["fetch", "fetch-2"]
    assert scene.offsets() == [(0, 50)]
    scene.brokers.respond(records(0, 0))
    assert scene.buffer.next_message() is None, "it is from before the seek"


@stepped({0: 1}, prefetch_messages=5)
async def test_the_fetcher_stops_at_the_limit_until_the_user_has_read(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(records(0, 0))
    scene.brokers.respond(records(0, 3))
    assert scene.brokers.requests == []
    assert scene.buffer.needs_space
    scene.buffer.on_space_freed = scene.fetcher.send_fetches
    assert len(list(iter(scene.buffer.next_message, None))) == 6
    assert scene.offsets() == [(0, 6)]


@stepped({0: 1, 1: 1}, prefetch_bytes=1)
async def test_the_byte_limit_is_for_all_partitions_together(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(records(0, 0))
    assert scene.brokers.requests == []


@stepped({0: 1, 1: 1}, prefetch_bytes=1)
async def test_fetches_of_a_paused_partition_take_no_space_of_others(scene: Scene) -> None:
    scene.buffer.on_space_freed = scene.fetcher.send_fetches
    scene.fetcher.send_fetches()
    nothing = PartitionData(partition_index=1, high_watermark=0, last_stable_offset=0)
    scene.brokers.respond(records(0, 0), nothing)
    scene.assignment["t", 0].pause()
    assert scene.buffer.next_message() is None
    _, _, request, _ = scene.brokers.requests[-1]
    assert request.forgotten_topics_data[0].partitions == [0], "partition 1 alone is fetched"


@stepped({0: 1})
async def test_a_preferred_replica_is_fetched_from_until_it_fails(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(PartitionData(partition_index=0, preferred_read_replica=3))
    assert scene.brokers.requests[-1][0] == 3
    scene.brokers.respond(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    assert scene.brokers.requests[-1][0] == 1, "the leader may have it"
    assert scene.assignment["t", 0].state is FetchState.FETCHING


@stepped({0: 1})
async def test_a_newer_leader_in_the_response_is_fetched_from_before_metadata(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    hint = LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
    scene.brokers.respond(failed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint))
    node_id, _, request, _ = scene.brokers.requests[-1]
    assert (node_id, request.topics[0].partitions[0].current_leader_epoch) == (2, 6)
    assert scene.brokers.refreshes == 1


@stepped({0: 1})
async def test_a_known_leader_in_the_response_backs_off(
    scene: Scene,
) -> None:
    scene.fetcher.send_fetches()
    hint = LeaderIdAndEpoch(leader_id=1, leader_epoch=5)
    scene.brokers.respond(failed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint))
    assert scene.brokers.requests == []
    await async_wait_until(lambda: scene.brokers.requests)


@stepped(dict.fromkeys(range(100), 1))
async def test_partitions_that_back_off_share_one_timer(scene: Scene) -> None:
    plans = 0
    plan = scene.fetcher.send_fetches

    def count() -> None:
        nonlocal plans
        plans += 1
        plan()

    scene.fetcher.send_fetches = count  # type: ignore[method-assign]
    count()
    refused = [failed(index, ErrorCode.NOT_LEADER_OR_FOLLOWER) for index in range(100)]
    scene.brokers.respond(*refused)
    await async_wait_until(lambda: len(scene.brokers.requests) == 1)
    assert plans < 10


@stepped({0: 1})
async def test_without_a_new_leader_the_fetch_is_retried_after_a_metadata_refresh(
    scene: Scene,
) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(failed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert scene.brokers.refreshes == 1
    await async_wait_until(lambda: scene.brokers.requests)
    assert scene.buffer.next_message() is None


@stepped({0: 1})
async def test_an_offset_out_of_range_resets_the_position(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    each = scene.assignment["t", 0]
    assert (each.state, each.reset_timestamp, scene.unknown_positions) == (
        FetchState.AWAIT_RESET,
        -2,
        1,
    )


@stepped({0: 1})
async def test_an_error_is_reported_once(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    for _ in range(2):
        scene.brokers.respond(failed(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        await async_wait_until(lambda: scene.brokers.requests)
    assert scene.errors() == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


@stepped({0: 1})
async def test_bytes_that_are_not_a_batch_are_reported(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(PartitionData(partition_index=0, records=memoryview(bytes(100))))
    assert scene.errors() == [KafkaError._BAD_MSG]


@stepped({0: 1})
async def test_an_evicted_session_starts_anew_with_all_partitions(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(records(0, 0))
    scene.brokers.respond(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    await async_wait_until(lambda: scene.brokers.requests)
    assert scene.brokers.requests[-1][2].session_epoch == 0
    assert scene.offsets() == [(0, 3)]


@stepped({0: 1})
async def test_a_lost_connection_is_retried_with_a_new_session(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    *_, on_response = scene.brokers.requests.pop()
    on_response(ConnectionResetError(104, "it hung up"))
    assert scene.brokers.requests == []
    await async_wait_until(lambda: scene.brokers.requests)
    assert scene.brokers.requests[-1][2].session_epoch == 0


@stepped({0: 1}, enable_partition_eof=True)
async def test_the_end_of_a_partition_is_reported_each_time_it_is_reached(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    at_end = PartitionData(partition_index=0, high_watermark=3, last_stable_offset=3)
    reached = records(0, 0)
    reached.high_watermark = reached.last_stable_offset = 3
    scene.brokers.respond(reached)
    scene.brokers.respond(at_end)
    found = list(iter(scene.buffer.next_message, None))
    assert [each.error() for each in found] == [None, None, None, KafkaError._PARTITION_EOF]
    assert found[-1].offset() == 3
    assert found[-1], "a message that is false is taken for none"


@stepped({0: 1}, enable_partition_eof=True)
async def test_the_end_is_reported_for_partitions_left_out_by_the_session(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    at_end = PartitionData(partition_index=0, high_watermark=0, last_stable_offset=0)
    scene.brokers.respond(at_end)
    scene.brokers.respond()
    assert scene.errors() == [KafkaError._PARTITION_EOF]
    scene.assignment["t", 0].seek(0)
    scene.brokers.respond()  # to what was asked before
    scene.brokers.respond()
    assert scene.errors() == [KafkaError._PARTITION_EOF]


@stepped({0: 1})
async def test_a_reassigned_partition_is_fetched_in_a_new_session(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    at_end = PartitionData(partition_index=0, high_watermark=0, last_stable_offset=0)
    scene.brokers.respond(at_end)
    again = TopicPartitionState("t", 0, AutoOffsetResetStrategy("earliest"))
    again.seek(0)
    scene.assignment["t", 0] = again
    scene.brokers.respond()
    request = scene.brokers.requests[-1][2]
    assert (request.session_id, request.session_epoch) == (9, 0)
    scene.brokers.respond(at_end)
    assert again.high_watermark == 0


@stepped({0: 1})
async def test_a_new_leader_epoch_requires_validation(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(records(0, 0))
    newer = TopicInfo("t", ID, (PartitionInfo(0, 2, 6),))
    scene.brokers.metadata = MetadataSnapshot(
        brokers=scene.brokers.metadata.brokers, topics={"t": newer}
    )
    scene.brokers.respond(records(0, 3))
    assert scene.assignment["t", 0].state is FetchState.AWAIT_VALIDATION
    assert scene.unknown_positions == 1


@stepped({0: 1})
async def test_close_closes_the_sessions_without_a_request_in_flight(scene: Scene) -> None:
    scene.fetcher.send_fetches()
    scene.brokers.respond(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    scene.fetcher.close()
    assert scene.brokers.requests[-1][2].session_epoch == -1
