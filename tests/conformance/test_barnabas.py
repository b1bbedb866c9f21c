"""Our own client against Barnabas, and against the real Kafka with `-m peer`.

It runs all scenarios of confluent-kafka with changed imports.
"""

from tests.conformance import test_confluent_kafka as theirs
from tests.conformance.clients.ours import BarnabasClient, BarnabasGroups, BarnabasTransactions


class TestRecords(theirs.TestRecords):
    library = BarnabasClient


class TestTopics(theirs.TestTopics):
    library = BarnabasClient


class TestSettings(theirs.TestSettings):
    library = BarnabasClient


class TestGroups(theirs.TestGroups):
    library = BarnabasGroups


class TestOffsets(theirs.TestOffsets):
    library = BarnabasGroups


class TestTransactions(theirs.TestTransactions):
    library = BarnabasTransactions
