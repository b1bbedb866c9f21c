"""A node with the controller role alone exposes metrics as brokers do."""

import asyncio
from pathlib import Path

from tests.node.controller_directory import ControllerDirectory, RunningController


async def scrape(controller: RunningController) -> str:
    host, _, port = (controller.node.metrics_address or "").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    response = await reader.read()
    writer.close()
    return response.decode()


def test_a_controller_exposes_metrics_of_itself_the_cluster_and_the_quorum(tmp_path: Path) -> None:
    directory = ControllerDirectory(tmp_path, barnabas_metrics_listener="127.0.0.1:0")
    scraped: list[str] = []

    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        await controller.create_topics("orders", partitions=2)
        scraped.append(await scrape(controller))

    directory.run(scenario)
    lines = scraped[0].splitlines()
    controller = "kafka_controller_kafkacontroller_"
    assert controller + "activecontrollercount 1.0" in lines
    assert controller + "activebrokercount 1.0" in lines
    assert controller + "globalpartitioncount 2.0" in lines
    raft = "kafka_server_raftmetrics_"
    assert raft + 'current_state{current_state="leader"} 1.0' in lines
    assert raft + "current_leader 1.0" in lines
    assert raft + "number_of_voters 1.0" in lines
    assert raft + "number_of_observers 0.0" in lines
