"""The protocol in a simulation: each row is committed once, whichever process dies."""

import pytest
from tests.spark.sink.simulation import Jobs, Spark

SEEDS = 4_000
AT_A_TIME = 500


@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
@pytest.mark.parametrize("kind", [Spark, Jobs])
def test_each_row_is_committed_once_after_any_process_dies(kind: type[Spark], first: int) -> None:
    for seed in range(first, first + AT_A_TIME):
        spark = kind(seed)
        try:
            spark.simulate()
            spark.check()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
