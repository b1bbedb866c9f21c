"""A pipeline runs on a cluster with only the master changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.cluster.journey import PARTITIONS, ROWS, TOPICS

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker
from barnabas.testing.ports import LOOPBACK

ROOT = Path(__file__).parents[3]

MASTER = f"local-cluster[{PARTITIONS},1,512]"
"""Executors are separate JVMs, as on any cluster, on one machine."""


@pytest.mark.timeout(300)
def test_executors_of_a_cluster_read_and_write(tmp_path: Path) -> None:
    with Broker() as broker, SchemaRegistry(broker.bootstrap_servers) as registry:
        for topic in TOPICS:
            broker.create_topic(topic, partitions=PARTITIONS)
        args = [MASTER, broker.bootstrap_servers, registry.url, str(tmp_path)]
        process = subprocess.run(
            [sys.executable, "-m", "tests.spark.cluster.journey", *args],
            env={**os.environ, "SPARK_LOCAL_IP": LOOPBACK},
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == {
        "imported": [True] * PARTITIONS,
        "batch": [ROWS, ROWS],
        "available now": [ROWS, ROWS],
        "stream": [ROWS, ROWS],
        "typed": 1450,
    }
