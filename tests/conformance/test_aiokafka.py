"""aiokafka against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.aio import AiokafkaClient
from tests.conformance.scenarios.records import RecordScenarios
from tests.conformance.scenarios.settings import ReplaceScenarios, SettingScenarios
from tests.conformance.scenarios.topics import TopicScenarios


class TestRecords(RecordScenarios):
    library = AiokafkaClient


class TestTopics(TopicScenarios):
    library = AiokafkaClient


class TestSettings(SettingScenarios, ReplaceScenarios):
    library = AiokafkaClient
