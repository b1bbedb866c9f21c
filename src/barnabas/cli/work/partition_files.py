"""JSON files that name partitions, as Kafka's commands read them."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.cli.work.refused import Refused
from barnabas.client.values import Partition


def read_json(file: str | Path) -> Any:
    try:
        return json.loads(Path(file).read_text())
    except OSError:
        raise Refused(f"Unable to read file {file}") from None
    except ValueError as error:
        raise Refused(f"{file} is not JSON: {error}") from None


def partitions_in(file: str | Path, what: str) -> list[dict[str, Any]]:
    """What follows "partitions"; each names a topic and a partition, and none twice."""
    content = read_json(file)
    try:
        listed = list(content["partitions"])
        named = [(str(each["topic"]), int(each["partition"])) for each in listed]
    except (KeyError, TypeError, ValueError):
        raise Refused(
            f'{file} is not {{"partitions": [{{"topic": NAME, "partition": NUMBER, ...}}]}}'
        ) from None
    if twice := duplicates(named):
        raise Refused(f"{what} contains duplicate topic partitions: {partition_list(twice)}")
    return listed


def duplicates(partitions: Iterable[Partition]) -> list[Partition]:
    return [each for each, count in Counter(partitions).items() if count > 1]


def partition_list(partitions: Iterable[Partition]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in partitions)
