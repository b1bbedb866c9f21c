"""Internal topics that cannot be created are logged once, with the settings to change."""

import logging

import pytest
from tests.wait import wait_until

from barnabas.client.admin import AdminClient
from barnabas.client.errors import KafkaException
from barnabas.testing import Broker


def test_an_internal_topic_that_cannot_be_created_is_logged_once_with_its_settings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lines() -> list[str]:
        return [line for line in caplog.messages if "cannot be created" in line]

    with (
        caplog.at_level(logging.WARNING, "barnabas.server"),
        Broker({"offsets.topic.replication.factor": 3}) as broker,
        AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin,
    ):
        for group in ("a", "b"):
            with pytest.raises(KafkaException):
                admin.describe_consumer_groups([group], request_timeout=1)[group].result()
            wait_until(lambda: bool(lines()), "it is logged")
    (line,) = lines()
    assert line.startswith("Topic __consumer_offsets cannot be created: ")
    assert line.endswith("Its settings are offsets.topic.*")
