"""confluent-kafka against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.confluent import ConfluentClient
from tests.conformance.clients.confluent_groups import ConfluentGroups
from tests.conformance.clients.confluent_transactions import ConfluentTransactions
from tests.conformance.scenarios.group_offsets import (
    GroupChangeScenarios,
    GroupListScenarios,
    OffsetScenarios,
)
from tests.conformance.scenarios.groups import (
    FencingScenarios,
    MigrationScenarios,
    PatternScenarios,
    ServerPatternScenarios,
    SharingScenarios,
    StaticMemberScenarios,
    UnreleasedScenarios,
)
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
from tests.conformance.scenarios.transactions import (
    MembershipTransactionScenarios,
    OffsetTransactionScenarios,
    TransactionScenarios,
)


class TestRecords(RecordScenarios):
    library = ConfluentClient


class TestTopics(TopicScenarios, DescribeScenarios, ListOffsetsScenarios):
    library = ConfluentClient


class TestSettings(SettingScenarios, ReplaceScenarios, ChangeScenarios):
    library = ConfluentClient


class TestGroups(
    SharingScenarios,
    PatternScenarios,
    ServerPatternScenarios,
    StaticMemberScenarios,
    FencingScenarios,
    UnreleasedScenarios,
    MigrationScenarios,
):
    library = ConfluentGroups


class TestOffsets(OffsetScenarios, GroupListScenarios, GroupChangeScenarios):
    library = ConfluentGroups


class TestTransactions(
    TransactionScenarios, OffsetTransactionScenarios, MembershipTransactionScenarios
):
    library = ConfluentTransactions
