"""confluent-kafka against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.confluent import ConfluentClient
from tests.conformance.scenarios.records import RecordScenarios
from tests.conformance.scenarios.settings import (
    ChangeScenarios,
    ReplaceScenarios,
    SettingScenarios,
)
from tests.conformance.scenarios.topics import (
    DescribeScenarios,
    ListOffsetsScenarios,
    TopicScenarios,
)


class TestRecords(RecordScenarios):
    library = ConfluentClient


class TestTopics(TopicScenarios, DescribeScenarios, ListOffsetsScenarios):
    library = ConfluentClient


class TestSettings(SettingScenarios, ReplaceScenarios, ChangeScenarios):
    library = ConfluentClient
