"""A node that is a controller only is scraped as brokers are."""

import asyncio
from pathlib import Path

from tests.node.home import Home, Life


async def scrape(life: Life) -> str:
    host, _, port = (life.node.metrics_address or "").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.decode()


def test_a_controller_tells_of_itself_the_cluster_and_the_quorum(tmp_path: Path) -> None:
    home = Home(tmp_path, barnabas_metrics_listener="127.0.0.1:0")
    scraped: list[str] = []

    async def life(life: Life) -> None:
        await life.join()
        await life.create("orders", partitions=2)
        scraped.append(await scrape(life))

    home.run(life)
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
