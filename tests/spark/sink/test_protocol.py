"""The protocol in a simulation: whoever dies, and whenever, each row is there once."""

import pytest
from tests.spark.sink.simulation import Jobs, Spark

SEEDS = 4_000
AT_A_TIME = 500


@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
@pytest.mark.parametrize("kind", [Spark, Jobs])
def test_each_row_is_committed_once_whoever_dies(kind: type[Spark], first: int) -> None:
    for seed in range(first, first + AT_A_TIME):
        spark = kind(seed)
        spark.play()
        assert sorted(spark.broker.log) == spark.expected, f"seed {seed}"
        assert not spark.broker.open_ids(), f"seed {seed}: readers would wait"
