"""Our own client against Barnabas, and against the real Kafka with `-m peer`."""

from tests.conformance.clients.ours import BarnabasClient, BarnabasGroups, BarnabasTransactions
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
    library = BarnabasClient


class TestTopics(TopicScenarios, DescribeScenarios, ListOffsetsScenarios):
    library = BarnabasClient


class TestSettings(SettingScenarios, ReplaceScenarios, ChangeScenarios):
    library = BarnabasClient


class TestGroups(
    SharingScenarios,
    PatternScenarios,
    ServerPatternScenarios,
    StaticMemberScenarios,
    FencingScenarios,
    UnreleasedScenarios,
    MigrationScenarios,
):
    library = BarnabasGroups


class TestOffsets(OffsetScenarios, GroupListScenarios, GroupChangeScenarios):
    library = BarnabasGroups


class TestTransactions(
    TransactionScenarios, OffsetTransactionScenarios, MembershipTransactionScenarios
):
    library = BarnabasTransactions
