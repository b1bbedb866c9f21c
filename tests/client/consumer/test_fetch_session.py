"""A fetch session says what has changed, and everything when it begins anew."""

from barnabas.client.consumer.fetch_session import FetchSessionHandler, PartitionFetch
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

ID, OTHER_ID = b"i" * 16, b"o" * 16


def want(offset: int, topic_id: bytes = ID) -> PartitionFetch:
    return PartitionFetch(topic_id, offset, 0, 1000)


def said(request: FetchRequest) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, each.partition, each.fetch_offset)
        for topic in request.topics
        for each in topic.partitions
    ]


def forgotten(request: FetchRequest) -> list[tuple[str, bytes, list[int]]]:
    return [(each.topic, each.topic_id, each.partitions) for each in request.forgotten_topics_data]


def begun() -> FetchSessionHandler:
    session = FetchSessionHandler()
    session.request({("t", 0): want(5), ("t", 1): want(6)})
    assert session.on_response(FetchResponse(session_id=77))
    return session


def test_the_first_request_has_all_partitions_and_starts_a_session() -> None:
    request = FetchSessionHandler().request({("t", 0): want(5), ("u", 1): want(6, OTHER_ID)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert said(request) == [("t", 0, 5), ("u", 1, 6)]
    assert [topic.topic_id for topic in request.topics] == [ID, OTHER_ID]


def test_the_next_request_has_only_changes() -> None:
    session = begun()
    request = session.request({("t", 0): want(9), ("t", 1): want(6)})
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert said(request) == [("t", 0, 9)]
    session.on_response(FetchResponse(session_id=77))
    request = session.request({("t", 0): want(9), ("t", 1): want(6)})
    assert (request.session_epoch, said(request)) == (2, [])


def test_a_removed_partition_is_forgotten_once() -> None:
    session = begun()
    request = session.request({("t", 1): want(6)})
    assert (said(request), forgotten(request)) == ([], [("t", ID, [0])])
    session.on_response(FetchResponse(session_id=77))
    assert forgotten(session.request({("t", 1): want(6)})) == []


def test_a_recreated_topic_is_fetched_by_its_new_id() -> None:
    session = begun()
    request = session.request({("t", 0): want(0, OTHER_ID), ("t", 1): want(6)})
    assert said(request) == [("t", 0, 0)]
    assert forgotten(request) == [("t", ID, [0])]


def test_a_session_that_the_broker_evicted_starts_anew() -> None:
    session = begun()
    session.request({("t", 0): want(5)})
    gone = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert not session.on_response(gone)
    request = session.request({("t", 0): want(5), ("t", 1): want(6)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert said(request) == [("t", 0, 5), ("t", 1, 6)]


def test_a_lost_connection_resets_the_session() -> None:
    session = begun()
    session.reset()
    request = session.request({("t", 0): want(5)})
    assert (request.session_id, request.session_epoch) == (77, 0), "the broker may drop the old one"
    assert said(request) == [("t", 0, 5)]


def test_without_a_session_every_request_has_all_partitions() -> None:
    session = FetchSessionHandler()
    for _ in range(2):
        request = session.request({("t", 0): want(5)})
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert said(request) == [("t", 0, 5)]
        assert session.on_response(FetchResponse(session_id=0))


def test_responses_with_topic_ids_are_returned_by_name() -> None:
    session = begun()
    by_id = FetchableTopicResponse(topic_id=ID, partitions=[PartitionData(partition_index=1)])
    by_name = FetchableTopicResponse(topic="t", partitions=[PartitionData(partition_index=0)])
    strange = FetchableTopicResponse(topic_id=OTHER_ID, partitions=[PartitionData()])
    response = FetchResponse(responses=[by_id, by_name, strange])
    assert [key for key, _ in session.partitions(response)] == [("t", 1), ("t", 0)]


def test_a_closing_request_exists_only_for_a_session() -> None:
    assert FetchSessionHandler().closing_request() is None
    last = begun().closing_request()
    assert last is not None
    assert (last.session_id, last.session_epoch, last.topics) == (77, -1, [])
