"""One session that has Spark's own Kafka connector beside ours."""

import importlib.machinery
import importlib.util
import subprocess

import pytest
from pyspark.sql import SparkSession
from tests.conformance.brokers import PEERS, Broker
from tests.conformance.spark.connectors import Cluster
from tests.spark import conftest as pipelines

spark_alone = pipelines.spark


@pytest.fixture(scope="session")
def spark(spark_alone: SparkSession) -> SparkSession:
    """The session of the pipelines' tests, which learns of the connector while it runs."""
    for jar in _connector_jars():
        spark_alone.sql(f"ADD JAR '{jar}'")
    return spark_alone


@pytest.fixture(scope="module")
def cluster(target: Broker) -> Cluster:
    """Each of the two brokers in turn."""
    return Cluster(target.bootstrap)


@pytest.fixture(scope="module")
def real(kafka: Broker) -> Cluster:
    """The real Kafka, for what is the same whoever answers."""
    return Cluster(kafka.bootstrap)


def _connector_jars() -> list[str]:
    """As the benchmark of connectors has them: Maven brings them the first time."""
    loader = importlib.machinery.SourceFileLoader("bench_spark", str(PEERS / "bench-spark"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    bench = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(bench)
        jars: str = bench.connector_jars()
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"Spark's Kafka connector cannot be had: {failure}")
    return jars.split(",")
