"""Keys go where Java's producer, librdkafka and we agree that they go."""

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

import barnabas

HASHES = ["murmur2", "fnv1a", "consistent"]


@pytest.mark.parametrize("name", HASHES)
@given(key=st.binary(max_size=40), partitions=st.integers(1, 1000))
def test_a_key_has_the_partition_of_librdkafka(name: str, key: bytes, partitions: int) -> None:
    assert getattr(barnabas, name)(key, partitions) == getattr(confluent_kafka, name)(
        key, partitions
    )


@pytest.mark.parametrize("name", HASHES)
def test_a_partition_count_of_zero_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="partition_count"):
        getattr(barnabas, name)(b"k", 0)
