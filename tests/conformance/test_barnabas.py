"""Our own client against Barnabas, and against the real Kafka with `-m peer`.

It goes through all that confluent-kafka goes through, with nothing but the import changed.
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
