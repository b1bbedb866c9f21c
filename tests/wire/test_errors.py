"""Error codes are the facts', and exceptions carry them."""

import pytest
from tests.wire import facts

from barnabas.wire.errors import ErrorCode, KafkaError


def test_the_codes_are_the_facts() -> None:
    declared = [(int(code), code.name, code.retriable) for code in ErrorCode]
    assert declared == list(facts.error_codes())


def test_a_code_from_a_newer_peer_is_an_unknown_error() -> None:
    assert ErrorCode.of(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.of(9_999) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "acks is 7"), "INVALID_REQUEST: acks is 7"),
        (KafkaError(ErrorCode.INVALID_REQUEST), "INVALID_REQUEST"),
    ],
)
def test_an_error_reads_as_its_code_and_message(error: KafkaError, text: str) -> None:
    assert error.code is ErrorCode.INVALID_REQUEST
    assert str(error) == text
