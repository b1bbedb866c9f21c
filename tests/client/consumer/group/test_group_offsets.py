"""Committing and fetching offsets from a coordinator that has its moods."""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from tests.client.consumer.group.joining import on_a_loop
from tests.client.expected_errors import TIMEOUTS_S
from tests.client.scripted import ScriptedBroker

from barnabas.client.cluster import ClusterClient, Deadline
from barnabas.client.consumer.group.group_offsets import GroupOffsets
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ConsumerGroupMetadata, TopicPartition
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TO_COMMIT = {("t", 0): TopicPartition("t", 0, 7)}


def moods(*codes: int) -> Iterator[int]:
    """These in turn, then all is well."""
    return chain(codes, repeat(0))


def committing(codes: Iterator[int]) -> Any:
    def answer(request: Any) -> OffsetCommitResponse:
        code = next(codes)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def fetching(codes: Iterator[int], group_codes: Iterator[int]) -> Any:
    def answer(request: Any) -> OffsetFetchResponse:
        code, group_code = next(codes), next(group_codes)
        (group,) = request.groups
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=9, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in group.topics
        ]
        results = OffsetFetchResponseGroup(
            group_id="g", topics=[] if group_code else topics, error_code=group_code
        )
        return OffsetFetchResponse(groups=[results])

    return answer


class Speaking:
    """Offsets of a member in some epoch, at a scripted broker."""

    def __init__(self, broker: ScriptedBroker, *, epoch: int = -1, **changed: Any) -> None:
        self.cluster = ClusterClient(broker.settings())
        self.epoch = epoch
        settings = ConsumerSettings(group_id="g", retry_backoff_ms=1, **changed)
        self.offsets = GroupOffsets(self.cluster, settings, self.identity)

    def identity(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata("g", self.epoch, "me" if self.epoch >= 0 else "")


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], None),
        ([ErrorCode.REQUEST_TIMED_OUT], None),
        ([ErrorCode.ILLEGAL_GENERATION], ErrorCode.ILLEGAL_GENERATION),
        ([ErrorCode.REBALANCE_IN_PROGRESS], ErrorCode.REBALANCE_IN_PROGRESS),
        ([ErrorCode.OFFSET_METADATA_TOO_LARGE], ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
    ids=str,
)
@on_a_loop
async def test_commits_retry_retriable_errors_and_return_others(
    codes: list[ErrorCode], outcome: ErrorCode | None
) -> None:
    async with ScriptedBroker({ApiKey.OFFSET_COMMIT: committing(moods(*codes))}) as broker:
        speaking = Speaking(broker, epoch=4)
        results = await speaking.offsets.commit(TO_COMMIT, Deadline.after(30_000))
        assert results == {("t", 0): outcome if outcome is None else KafkaError(outcome)}
        request = broker.requests_of(ApiKey.OFFSET_COMMIT)[-1]
        assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 4)
        await speaking.cluster.close()


@on_a_loop
async def test_a_commit_with_a_stale_epoch_is_retried_with_the_new_one() -> None:
    codes = moods(ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH)
    async with ScriptedBroker() as broker:
        speaking = Speaking(broker, epoch=4, group_protocol="consumer")
        answer = committing(codes)

        def beat_and_answer(request: Any) -> OffsetCommitResponse:
            speaking.epoch += 1
            response: OffsetCommitResponse = answer(request)
            return response

        broker.handlers[ApiKey.OFFSET_COMMIT] = beat_and_answer
        results = await speaking.offsets.commit(TO_COMMIT, Deadline.after(30_000))
        assert results == {("t", 0): None}
        epochs = [r.generation_id_or_member_epoch for r in broker.requests_of(ApiKey.OFFSET_COMMIT)]
        assert epochs == [4, 5, 6]
        await speaking.cluster.close()


@on_a_loop
async def test_topic_ids_are_sent_only_if_all_are_known() -> None:
    async with ScriptedBroker(
        {ApiKey.OFFSET_COMMIT: committing(moods())}, topics={"t": 1, "u": 1}
    ) as broker:
        speaking = Speaking(broker)
        deadline = Deadline.after(30_000)
        await speaking.cluster.topic("t", deadline=deadline)
        offsets = TO_COMMIT | {("u", 0): TopicPartition("u", 0, 1)}
        assert set((await speaking.offsets.commit(TO_COMMIT, deadline)).values()) == {None}
        assert set((await speaking.offsets.commit(offsets, deadline)).values()) == {None}
        versions = [each.version for each in broker.received if each.key == ApiKey.OFFSET_COMMIT]
        assert versions == [10, 9]
        await speaking.cluster.close()


@on_a_loop
async def test_committed_waits_for_offsets_of_open_transactions() -> None:
    codes = moods(ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    async with ScriptedBroker({ApiKey.OFFSET_FETCH: fetching(codes, moods())}) as broker:
        speaking = Speaking(broker)
        found = await speaking.offsets.committed([("t", 0)], Deadline.after(30_000))
        assert found["t", 0].offset == 9
        requests = broker.requests_of(ApiKey.OFFSET_FETCH)
        assert [each.require_stable for each in requests] == [True] * 3
        await speaking.cluster.close()


@on_a_loop
async def test_an_offset_that_stays_unstable_fails_with_that_error() -> None:
    for answers in (1, 1_000_000):
        error = await final_error(answers)
        assert error == KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT)


async def final_error(answers: int) -> KafkaError | None:
    """Of an unstable offset, after so many answers and then silence until the time is over."""
    unstable = fetching(repeat(int(ErrorCode.UNSTABLE_OFFSET_COMMIT)), moods())
    for timeout_s in TIMEOUTS_S:
        async with ScriptedBroker() as broker:
            broker.handlers[ApiKey.OFFSET_FETCH] = lambda request, broker=broker: (
                unstable(request)
                if len(broker.requests_of(ApiKey.OFFSET_FETCH)) <= answers
                else None
            )
            speaking = Speaking(broker)
            asking = speaking.offsets.committed([("t", 0)], Deadline.after(timeout_s * 1000))
            try:
                return (await asking)["t", 0].error
            except KafkaException:
                continue  # not even the first came in time
            finally:
                await speaking.cluster.close()
    return None


@on_a_loop
async def test_a_group_that_may_not_be_read_is_reported() -> None:
    refused = moods(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    async with ScriptedBroker({ApiKey.OFFSET_FETCH: fetching(moods(), refused)}) as broker:
        speaking = Speaking(broker)
        with pytest.raises(KafkaException) as raised:
            await speaking.offsets.committed([("t", 0)], Deadline.after(30_000))
        assert raised.value.args[0] == KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        await speaking.cluster.close()


@on_a_loop
async def test_a_consumer_without_a_group_id_is_rejected() -> None:
    async with ScriptedBroker() as broker:
        cluster = ClusterClient(broker.settings())
        nobody = GroupOffsets(cluster, ConsumerSettings(), lambda: ConsumerGroupMetadata(""))
        with pytest.raises(KafkaException, match=r"set group\.id"):
            await nobody.committed([("t", 0)], Deadline.after(1_000))
        await cluster.close()
