"""kafka-python against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.kafka_python import KafkaPythonClient
from tests.conformance.scenarios.records import RecordScenarios
from tests.conformance.scenarios.settings import ChangeScenarios, SettingScenarios
from tests.conformance.scenarios.topics import (
    DescribeScenarios,
    ListOffsetsScenarios,
    LogDirScenarios,
    TopicScenarios,
)


class TestRecords(RecordScenarios):
    library = KafkaPythonClient


class TestTopics(TopicScenarios, DescribeScenarios, ListOffsetsScenarios, LogDirScenarios):
    library = KafkaPythonClient


class TestSettings(SettingScenarios, ChangeScenarios):
    library = KafkaPythonClient
