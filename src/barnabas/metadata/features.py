"""Feature levels: what this version supports, and with what a cluster of a release starts.

`metadata.version` decides how metadata records are written; the other features switch a
behaviour of the whole cluster. The levels and their names are those of Apache Kafka 4.3.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.metadata.states import FeatureLevelRange

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"

SUPPORTED: Final[Mapping[str, FeatureLevelRange]] = {
    GROUP_VERSION: FeatureLevelRange(0, 1),
    KRAFT_VERSION: FeatureLevelRange(0, 1),
    METADATA_VERSION: FeatureLevelRange(7, 30),
    SHARE_VERSION: FeatureLevelRange(0, 1),
    STREAMS_VERSION: FeatureLevelRange(0, 1),
    TRANSACTION_VERSION: FeatureLevelRange(0, 2),
    ELIGIBLE_LEADER_REPLICAS_VERSION: FeatureLevelRange(0, 1),
}

MIN_METADATA_LEVEL: Final = SUPPORTED[METADATA_VERSION].min
LATEST_METADATA_LEVEL: Final = SUPPORTED[METADATA_VERSION].max

METADATA_RELEASES: Final[Mapping[int, str]] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}

# The metadata levels from which a capability is available.
SCRAM_FROM: Final = 11
METADATA_TRANSACTIONS_FROM: Final = 13
DELEGATION_TOKENS_FROM: Final = 14
CONTROLLER_REGISTRATION_FROM: Final = 15
DIRECTORY_ASSIGNMENT_FROM: Final = 17
ELIGIBLE_LEADERS_FROM: Final = 23
CORDONED_DIRECTORIES_FROM: Final = 30

# Levels with records that older levels cannot read: a downgrade past one loses metadata.
_RECORDS_CHANGED_AT: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30})

# For each feature, (metadata level, feature level) from which a new cluster has that level.
_DEFAULT_FROM: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    KRAFT_VERSION: ((21, 1),),
    TRANSACTION_VERSION: ((24, 2),),
    GROUP_VERSION: ((22, 1),),
    ELIGIBLE_LEADER_REPLICAS_VERSION: ((26, 1),),
    SHARE_VERSION: ((28, 1),),
    STREAMS_VERSION: ((29, 1),),
}

_DEPENDENCIES: Final[Mapping[tuple[str, int], Mapping[str, int]]] = {
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): {METADATA_VERSION: ELIGIBLE_LEADERS_FROM},
}


def default_levels(metadata_level: int = LATEST_METADATA_LEVEL) -> dict[str, int]:
    """Returns the level of every feature in a cluster that is formatted at `metadata_level`."""
    levels = {METADATA_VERSION: metadata_level}
    for feature, steps in _DEFAULT_FROM.items():
        levels[feature] = max((level for at, level in steps if metadata_level >= at), default=0)
    return levels


def metadata_level(release: str) -> int:
    """Returns the level of a release: "4.2-IV0" names one level, "4.2" the last of that release."""
    matches = [
        level
        for level, name in METADATA_RELEASES.items()
        if release == name or release == name.partition("-")[0]
    ]
    if not matches:
        oldest, newest = min(METADATA_RELEASES), max(METADATA_RELEASES)
        raise ValueError(
            f"Unknown release version '{release}': {release_name(oldest)} to "
            f"{release_name(newest)} are supported."
        )
    return max(matches)


def release_name(level: int) -> str:
    """Returns the release name of a metadata level."""
    return METADATA_RELEASES.get(level, str(level))


def is_lossy_downgrade(current_level: int, target_level: int) -> bool:
    """Whether a downgrade to `target_level` could lose what newer records hold."""
    return any(target_level < level <= current_level for level in _RECORDS_CHANGED_AT)


def unmet_dependencies(feature: str, level: int, levels: Mapping[str, int]) -> dict[str, int]:
    """Returns the features that `feature` at `level` needs and `levels` does not have."""
    needed = _DEPENDENCIES.get((feature, level), {})
    return {name: least for name, least in needed.items() if levels.get(name, 0) < least}
