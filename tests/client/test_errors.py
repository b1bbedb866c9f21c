"""KafkaError and KafkaException are used as confluent_kafka's are, and compare as those do."""

import pickle

import confluent_kafka
import pytest

from barnabas.client.codes import ErrorCodes
from barnabas.client.errors import KafkaError, KafkaException, broker_error, fail
from barnabas.wire.errors import ErrorCode

THEIRS = {
    name: value for name, value in vars(confluent_kafka.KafkaError).items() if type(value) is int
}


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_every_constant_of_confluent_kafka_is_here_with_its_name(name: str) -> None:
    code = getattr(KafkaError, name)
    assert code == THEIRS[name]
    assert KafkaError(code).name() == confluent_kafka.KafkaError(code).name()


@pytest.mark.parametrize("code", ErrorCode)
def test_kafkas_own_names_of_codes_are_constants_too(code: ErrorCode) -> None:
    if code is not ErrorCode.NONE:
        assert getattr(KafkaError, code.name) == code


def test_every_code_has_a_text() -> None:
    codes = {value for value in vars(ErrorCodes).values() if isinstance(value, int)}
    texts = {code: KafkaError(code).str() for code in codes}
    assert all(
        text.startswith(("Local: ", "Broker: ")) for code, text in texts.items() if code != 0
    )
    assert not [text for text in texts.values() if "_" in text]


@pytest.mark.parametrize("code", [3, 0, -1, -191, 12345])
def test_the_text_of_an_error_is_confluent_kafkas(code: int) -> None:
    ours, theirs = KafkaError(code, "why"), confluent_kafka.KafkaError(code, "why")
    assert repr(ours) == str(ours) == repr(theirs)
    assert repr(KafkaError(code, "why", fatal=True)) == repr(
        confluent_kafka.KafkaError(code, "why", fatal=True)
    )
    assert repr(KafkaException(ours)) == repr(confluent_kafka.KafkaException(theirs))


def test_an_error_equals_its_code() -> None:
    error = KafkaError(KafkaError._PARTITION_EOF)
    assert error == KafkaError._PARTITION_EOF == error.code()
    assert error == KafkaError(KafkaError._PARTITION_EOF, "another reason", fatal=True)
    assert error != KafkaError(KafkaError._FAIL)
    assert error != "_PARTITION_EOF"
    assert hash(error) == hash(KafkaError._PARTITION_EOF)
    assert KafkaError(3) < 4 <= KafkaError(4) <= KafkaError(5) > KafkaError(4) >= 3
    assert bool(KafkaError(0))


def test_an_error_has_its_flags() -> None:
    plain = KafkaError(3)
    assert [plain.fatal(), plain.retriable(), plain.txn_requires_abort()] == [False] * 3
    marked = KafkaError(3, None, True, True, True)
    assert [marked.fatal(), marked.retriable(), marked.txn_requires_abort()] == [True] * 3


def test_a_code_must_be_a_number() -> None:
    with pytest.raises(TypeError):
        KafkaError("3")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        KafkaError()  # type: ignore[call-arg]
    assert KafkaError(error=3, reason="x").str() == "x"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_and_exceptions_are_pickled(protocol: int) -> None:
    exception = KafkaException(KafkaError(3, "why", fatal=True))
    again = pickle.loads(pickle.dumps(exception, protocol))
    assert repr(again) == repr(exception)
    assert again.args[0].fatal()


def test_an_exception_carries_its_error() -> None:
    with pytest.raises(KafkaException) as raised:
        fail(KafkaError._STATE, "closed")
    assert raised.value.args[0].code() == KafkaError._STATE
    assert str(raised.value) == str(raised.value.args[0])


def test_the_message_of_a_broker_is_the_text_of_the_error() -> None:
    error = broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, "gone")
    assert (error.str(), error.retriable()) == ("gone", True)
    assert broker_error(ErrorCode.INVALID_CONFIG, "").str() == "Broker: A setting is not valid"
    assert not broker_error(ErrorCode.INVALID_CONFIG).retriable()
    assert broker_error(999).code() == 999
