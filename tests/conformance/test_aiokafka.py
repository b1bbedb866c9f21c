"""aiokafka against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.aio import AiokafkaClient
from tests.conformance.clients.aio_groups import AiokafkaGroups
from tests.conformance.clients.aio_transactions import AiokafkaTransactions
from tests.conformance.scenarios.group_offsets import GroupListScenarios, OffsetScenarios
from tests.conformance.scenarios.groups import (
    PatternScenarios,
    SharingScenarios,
    StaticMemberScenarios,
)
from tests.conformance.scenarios.records import RecordScenarios
from tests.conformance.scenarios.settings import ReplaceScenarios, SettingScenarios
from tests.conformance.scenarios.topics import TopicScenarios
from tests.conformance.scenarios.transactions import (
    OffsetTransactionScenarios,
    TransactionScenarios,
)


class TestRecords(RecordScenarios):
    library = AiokafkaClient


class TestTopics(TopicScenarios):
    library = AiokafkaClient


class TestSettings(SettingScenarios, ReplaceScenarios):
    library = AiokafkaClient


class TestGroups(SharingScenarios, PatternScenarios, StaticMemberScenarios):
    library = AiokafkaGroups


class TestOffsets(OffsetScenarios, GroupListScenarios):
    library = AiokafkaGroups


class TestTransactions(TransactionScenarios, OffsetTransactionScenarios):
    library = AiokafkaTransactions
