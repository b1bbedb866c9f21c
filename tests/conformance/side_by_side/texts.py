"""Error messages: Kafka's own words, except for the differences listed here.

Kafka's tools and most clients print a broker's message, and users search for it. Where Kafka says
nothing specific, a message of Barnabas may say more; it may also continue Kafka's sentence.
"""

import re
from typing import NamedTuple

GENERAL_SENTENCES = frozenset(
    {
        "",
        "This server does not host this topic-partition.",
        "This server does not host this topic ID.",
        "This most likely occurs because of a request being malformed by the client library or the "
        "message was sent to an incompatible broker. See the broker logs for more details.",
        "Leader election not needed for topic partition.",
        "Authorization failed.",
        "Topic authorization failed.",
        "Group authorization failed.",
        "Cluster authorization failed.",
        "Transactional Id authorization failed.",
    }
)
"""What Kafka sends when it has only an error code to say: the code's sentence, or nothing."""


class IntendedDifference(NamedTuple):
    """Patterns of a message of Kafka and of the one that Barnabas sends instead."""

    kafka: str
    barnabas: str
    reason: str


INTENDED = [
    IntendedDifference(
        "Invalid resourceType UNKNOWN", r"Invalid resourceType \d+", "it names the code"
    ),
    IntendedDifference(
        r"Could not parse principal from `.*` \(no colon .*\)",
        "Could not parse principal from `.*`: it has no colon",
        "it is shorter",
    ),
    IntendedDifference(
        r"Request Request\(.*\) needs \w+ permission\.",
        "The client's principal has no permission for this on the cluster.",
        "Kafka prints Java objects",
    ),
    IntendedDifference(
        r"The group has described topic\(s\) that the client is not authorized to describe\.",
        "The members of the group read topics that the client has no permission to describe.",
        "it says what the client lacks",
    ),
    IntendedDifference(
        "The voter id for ReplicaKey.* is already part of the set of voters.*",
        r"Node \d+ is a voter already, of .*",
        "Kafka prints Java objects",
    ),
    IntendedDifference(
        "Cannot remove voter ReplicaKey.* from the set of voters .*",
        "No voter has the id .*|Node 1 is the only voter: add another one first.",
        "Kafka prints Java objects, and does not say that a quorum keeps its last voter",
    ),
    IntendedDifference(
        "Add voter request didn't include the endpoint .*",
        "The voter's listeners must include CONTROLLER.",
        "Kafka prints Java objects",
    ),
    IntendedDifference(
        "(Add|Remove) voter request didn't include a valid voter",
        "A voter is named by its node id and its directory id.",
        "Kafka does not say what a valid voter is",
    ),
    IntendedDifference(
        "New voter ReplicaKey.* is not ready to receive requests|"
        "Aborted add voter operation for since API_VERSIONS returned an error .*",
        "Try again later: node 7 does not respond at .*",
        "Kafka prints Java objects, or does not name the address",
    ),
    IntendedDifference(
        'The given id "other" doesn\'t match the cluster id ".*"',
        'The given id "other" doesn\'t match the cluster id ".*"',
        "each cluster has its id",
    ),
    IntendedDifference(
        "SubscribedTopicRegex `.*` is not a valid regular expression: .*",
        "SubscribedTopicRegex `.*` is not a valid regular expression: .*",
        "the reason is in the words of the RE2 library, which names the position",
    ),
    IntendedDifference(
        r"Timestamp \d+ of message with offset \d+ is out of range\. .*",
        r"Timestamp \d+ of message with offset \d+ is out of range\. .*",
        "the limits move with the clock",
    ),
    IntendedDifference(
        "requirement failed: .*",
        ".* must .*",
        "Kafka prints how Scala checks it, without the values",
    ),
    IntendedDifference(
        "Config value append is not allowed for config key: .*",
        "Can't APPEND to key .* because its type is not LIST.",
        "Kafka has another sentence for the same error of other resources",
    ),
    IntendedDifference(
        "Invalid value burn for configuration cleanup.policy: String must be one of: .*",
        "Invalid value delete,burn for configuration cleanup.policy: .*, not burn",
        "Kafka prints one element of the list as the value",
    ),
    IntendedDifference(
        r"Invalid value \[x\] for configuration .*: .* must be the literal '\*' or a list of .*",
        "Invalid value x for configuration .*: Value must be the literal '\\*' or a list of .*",
        "Kafka prints the value as a Java list, and the name twice",
    ),
    IntendedDifference(
        r"Invalid value 2\.0 for configuration .*",
        "Invalid value 2 for configuration .*",
        "Kafka prints the number that Java parsed, not the text that the user wrote",
    ),
]


def is_same_text(kafka: str | None, barnabas: str | None) -> bool:
    """Whether both messages are the same for a reader, or differ as intended."""
    if kafka == barnabas:
        return True
    if kafka is None or kafka in GENERAL_SENTENCES:
        return barnabas != ""
    if barnabas is None:
        return False
    return barnabas.startswith(kafka) or any(
        re.fullmatch(intended.kafka, kafka) and re.fullmatch(intended.barnabas, barnabas)
        for intended in INTENDED
    )
