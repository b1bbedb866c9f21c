"""Where a partition is read from is found out: by the group, by time, by the leader's epochs."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from barnabas.client.cluster import Deadline, MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.consumer.offset_lookup import OffsetAndTimestamp, OffsetResults
from barnabas.client.consumer.position_updater import PositionUpdater
from barnabas.client.consumer.subscription_state import (
    AutoOffsetResetStrategy,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    PartitionKey,
    TopicPartition,
)

KEY = ("t", 0)


class Leaders:
    """Responds as the test has arranged; each response is used once, the last one always."""

    def __init__(self, *answers: OffsetAndTimestamp | KafkaError) -> None:
        self.answers = list(answers)
        self.requested: list[int] = []

    async def list_offsets(
        self, wanted: Mapping[PartitionKey, int], deadline: Deadline
    ) -> OffsetResults:
        return self._answer(wanted)

    async def offsets_for_leader_epochs(
        self, epochs: Mapping[PartitionKey, int], deadline: Deadline
    ) -> OffsetResults:
        return self._answer(epochs)

    def _answer(self, asked: Mapping[PartitionKey, int]) -> OffsetResults:
        self.requested += asked.values()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return dict.fromkeys(asked, answer)


class Committed:
    """A group; None stands for no committed offset."""

    def __init__(self, *answers: int | KafkaError | KafkaException | None) -> None:
        self.answers = list(answers)

    async def committed(
        self, partitions: Collection[PartitionKey], *, deadline: Deadline
    ) -> dict[PartitionKey, TopicPartition]:
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaException):
            raise answer
        partition = TopicPartition(*KEY)
        if isinstance(answer, KafkaError):
            partition.error = answer
        elif answer is not None:
            partition.offset = answer
        return {KEY: partition}


class Cluster:
    metadata = MetadataSnapshot(topics={"t": TopicInfo("t", partitions=(PartitionInfo(0, 1, 9),))})


def update_positions(
    each: TopicPartitionState,
    *,
    group: Committed | None = None,
    leaders: Leaders | None = None,
    during_request: Callable[[], None] = lambda: None,
) -> list[KafkaError]:
    """Updates the position until it is found or the partition stops; returns reported errors."""
    errors: list[KafkaError] = []

    async def run() -> None:
        updated = asyncio.Event()
        positions = PositionUpdater(
            Cluster(),  # type: ignore[arg-type]
            group,  # type: ignore[arg-type]
            leaders or Leaders(OffsetAndTimestamp(0, 0)),  # type: ignore[arg-type]
            ConsumerSettings(retry_backoff_ms=1, retry_backoff_max_ms=1),
            {KEY: each},
            lambda _, error: errors.append(error),
            updated.set,
        )
        positions.update()
        during_request()
        async with asyncio.timeout(60):
            while each.state not in (FetchState.FETCHING, FetchState.STOPPED):
                await updated.wait()
                updated.clear()
        positions.close()

    asyncio.run(run())
    return errors


def assigned(offset: int, epoch: int = -1, policy: str = "earliest") -> TopicPartitionState:
    each = TopicPartitionState(*KEY, AutoOffsetResetStrategy(policy))
    each.seek(offset, epoch)
    return each


def test_the_committed_offset_is_the_first_position() -> None:
    each = assigned(OFFSET_STORED)
    assert update_positions(each, group=Committed(42)) == []
    assert (each.fetch_offset, each.committed_offset) == (42, 42)


def test_without_a_committed_offset_auto_offset_reset_applies() -> None:
    each, leaders = assigned(OFFSET_STORED), Leaders(OffsetAndTimestamp(7, 0))
    assert update_positions(each, group=Committed(None), leaders=leaders) == []
    assert (each.fetch_offset, leaders.requested) == (7, [-2])


def test_without_an_offset_and_a_reset_policy_an_error_is_reported() -> None:
    each = assigned(OFFSET_STORED, policy="none")
    assert update_positions(each, group=Committed(None)) == [KafkaError._AUTO_OFFSET_RESET]
    assert each.state is FetchState.STOPPED


def test_a_retriable_error_of_the_group_is_retried() -> None:
    each = assigned(OFFSET_STORED)
    busy = KafkaException(KafkaError(KafkaError._TIMED_OUT, retriable=True))
    assert update_positions(each, group=Committed(busy, 5)) == []
    assert each.fetch_offset == 5


def test_the_beginning_and_end_are_requested_from_the_leader() -> None:
    for offset, timestamp in ((OFFSET_BEGINNING, -2), (OFFSET_END, -1)):
        each, leaders = assigned(offset), Leaders(OffsetAndTimestamp(11, 0))
        assert update_positions(each, leaders=leaders) == []
        assert (each.fetch_offset, leaders.requested) == (11, [timestamp])


def test_a_timestamp_after_the_last_record_resets_to_the_end() -> None:
    each = assigned(OFFSET_STORED, policy="by_duration:PT1H")
    leaders = Leaders(OffsetAndTimestamp(-1, -1), OffsetAndTimestamp(30, 0))
    assert update_positions(each, group=Committed(None), leaders=leaders) == []
    assert each.fetch_offset == 30
    assert leaders.requested[1] == -1


def test_a_non_retriable_error_of_the_group_is_reported_and_retried() -> None:
    each = assigned(OFFSET_BEGINNING)
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert update_positions(each, leaders=Leaders(refused, OffsetAndTimestamp(0, 0))) == [refused]
    assert each.fetch_offset == 0


def test_an_epoch_that_ends_after_the_offset_validates_it() -> None:
    each = assigned(20, epoch=3)
    assert update_positions(each, leaders=Leaders(OffsetAndTimestamp(25, 3))) == []
    assert (each.fetch_offset, each.leader_epoch) == (20, 9)


def test_a_truncated_log_is_read_from_where_it_diverged() -> None:
    each = assigned(20, epoch=3)
    version = each.progress.version
    assert update_positions(each, leaders=Leaders(OffsetAndTimestamp(15, 2))) == []
    assert each.fetch_offset == 15
    assert each.progress.version > version, "what was fetched of the lost log is not delivered"


def test_without_a_reset_policy_truncation_is_reported() -> None:
    each = assigned(20, epoch=3, policy="none")
    assert update_positions(each, leaders=Leaders(OffsetAndTimestamp(15, 2))) == [
        KafkaError._LOG_TRUNCATION
    ]
    assert each.state is FetchState.STOPPED


def test_an_unknown_epoch_resets_the_position() -> None:
    each = assigned(20, epoch=3)
    assert (
        update_positions(
            each, leaders=Leaders(OffsetAndTimestamp(-1, -1), OffsetAndTimestamp(4, 0))
        )
        == []
    )
    assert each.fetch_offset == 4


def test_a_response_after_a_seek_is_ignored() -> None:
    each = assigned(OFFSET_BEGINNING)
    update_positions(
        each, leaders=Leaders(OffsetAndTimestamp(0, 0)), during_request=lambda: each.seek(50)
    )
    assert each.fetch_offset == 50
