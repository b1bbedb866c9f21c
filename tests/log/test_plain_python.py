"""The log without its compiled modules."""

from tests.uncompiled import run_as_plain_python


def test_a_log_appends_as_plain_python() -> None:
    run_as_plain_python(
        "tests/log/test_appending_and_reading.py",
        "tests/log/test_disk_failures.py",
        "tests/log/test_producers.py",
        "tests/log/test_rolling.py",
        "tests/log/test_transactions.py",
        "tests/replication/test_partition.py",
    )
