"""kafka-python against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.kafka_python import KafkaPythonClient
from tests.conformance.clients.kafka_python_groups import KafkaPythonGroups
from tests.conformance.clients.kafka_python_transactions import KafkaPythonTransactions
from tests.conformance.scenarios.group_offsets import (
    GroupChangeScenarios,
    GroupListScenarios,
    OffsetDeletionScenarios,
    OffsetScenarios,
)
from tests.conformance.scenarios.groups import (
    FencingScenarios,
    PatternScenarios,
    SharingScenarios,
    StaticMemberScenarios,
)
from tests.conformance.scenarios.records import RecordScenarios
from tests.conformance.scenarios.settings import ChangeScenarios, SettingScenarios
from tests.conformance.scenarios.topics import (
    DescribeScenarios,
    ListOffsetsScenarios,
    LogDirScenarios,
    TopicScenarios,
)
from tests.conformance.scenarios.transactions import (
    MembershipTransactionScenarios,
    OffsetTransactionScenarios,
    TransactionAdminScenarios,
    TransactionScenarios,
)


class TestRecords(RecordScenarios):
    library = KafkaPythonClient


class TestTopics(TopicScenarios, DescribeScenarios, ListOffsetsScenarios, LogDirScenarios):
    library = KafkaPythonClient


class TestSettings(SettingScenarios, ChangeScenarios):
    library = KafkaPythonClient


class TestGroups(SharingScenarios, PatternScenarios, StaticMemberScenarios, FencingScenarios):
    library = KafkaPythonGroups


class TestOffsets(
    OffsetScenarios, GroupListScenarios, GroupChangeScenarios, OffsetDeletionScenarios
):
    library = KafkaPythonGroups


class TestTransactions(
    TransactionScenarios,
    OffsetTransactionScenarios,
    MembershipTransactionScenarios,
    TransactionAdminScenarios,
):
    library = KafkaPythonTransactions
