"""One Spark session and one broker for all Spark tests of this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.spark.prerequisites import PrerequisiteError, require_java
from barnabas.spark.session import configure
from barnabas.testing import Broker

LOG_SETTINGS = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""

SHORT_INTERVALS = {
    "group.consumer.assignment.interval.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A broker in this process; tests share it and use their own topics."""
    with Broker(SHORT_INTERVALS) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A timeout in the middle of a call to Spark would break every test after it."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on this machine with two cores; a test that starts a query stops it."""
    try:
        require_java()
    except PrerequisiteError as error:
        pytest.fail(str(error))
    directory = tmp_path_factory.mktemp("spark")
    log_settings = directory / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_PYTHON", raising=False)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = _session(directory, log_settings)
        yield session
        session.stop()


def _session(directory: Path, log_settings: Path) -> SparkSession:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j.configurationFile={log_settings}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
    }
    builder = configure(SparkSession.builder.master("local[2]").appName("barnabas tests"))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
