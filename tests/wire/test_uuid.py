"""UUIDs as bytes and in Kafka's text form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.uuid import METADATA_TOPIC_ID, ZERO, from_text, random_uuid, to_text


def test_the_text_is_that_of_kafka() -> None:
    assert to_text(ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert from_text("-_8AAAAAAAAAAAAAAAAAAA") == b"\xfb\xff" + bytes(14)


@given(st.binary(min_size=16, max_size=16))
def test_text_is_parsed_to_the_same_bytes(uuid: bytes) -> None:
    text = to_text(uuid)
    assert len(text) == 22
    assert from_text(text) == uuid


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 23, "A" * 21, "!" * 22, "ä" * 22, "A" * 44])
def test_malformed_text_raises_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        from_text(text)


def test_random_ids_differ_and_never_look_like_an_option() -> None:
    messages_of_version = {random_uuid() for _ in range(500)}
    assert len(messages_of_version) == 500
    assert not any(to_text(uuid).startswith("-") for uuid in messages_of_version)
    assert all(uuid[6] >> 4 == 4 and uuid[8] >> 6 == 2 for uuid in messages_of_version)
