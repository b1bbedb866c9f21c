"""A Spark session with Spark's Kafka connector and ours."""

import importlib.machinery
import importlib.util
import subprocess

import pytest
from pyspark.sql import SparkSession
from tests.conformance.brokers import PEERS, Broker
from tests.conformance.spark.connectors import Cluster
from tests.spark import conftest as pipelines

spark_without_connector = pipelines.spark


@pytest.fixture(scope="session")
def spark(spark_without_connector: SparkSession) -> SparkSession:
    """The session of the other Spark tests, with the jars of the connector added."""
    for jar in _connector_jars():
        spark_without_connector.sql(f"ADD JAR '{jar}'")
    return spark_without_connector


@pytest.fixture(scope="module")
def cluster(target: Broker) -> Cluster:
    """Both brokers in turn."""
    return Cluster(target.bootstrap)


@pytest.fixture(scope="module")
def real_kafka(kafka: Broker) -> Cluster:
    """The real Kafka, for tests that do not depend on the broker."""
    return Cluster(kafka.bootstrap)


def _connector_jars() -> list[str]:
    """Returns the jars of the connector benchmark; Maven downloads them the first time."""
    loader = importlib.machinery.SourceFileLoader("bench_spark", str(PEERS / "bench-spark"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    bench = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(bench)
        jars: str = bench.connector_jars()
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"Spark's Kafka connector is not available: {failure}")
    return jars.split(",")
