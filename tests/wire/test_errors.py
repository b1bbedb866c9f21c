"""Error codes equal tests/facts/errors.txt, and exceptions have them."""

import pytest
from tests.wire import facts

from barnabas.wire.errors import ErrorCode, KafkaError


def test_error_codes_equal_the_facts() -> None:
    declared = [(int(code), code.name, code.retriable) for code in ErrorCode]
    assert declared == list(facts.error_codes())


def test_an_unknown_code_is_unknown_server_error() -> None:
    assert ErrorCode.of(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.of(9_999) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "acks is 7"), "INVALID_REQUEST: acks is 7"),
        (KafkaError(ErrorCode.INVALID_REQUEST), "INVALID_REQUEST"),
    ],
)
def test_the_text_of_an_error_is_its_code_and_message(error: KafkaError, text: str) -> None:
    assert error.code is ErrorCode.INVALID_REQUEST
    assert str(error) == text
