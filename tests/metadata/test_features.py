"""Feature levels, as `kafka-storage version-mapping` of Kafka 4.3 has them."""

import pytest

from barnabas.metadata.features import (
    default_levels,
    is_lossy_downgrade,
    metadata_level,
    release_name,
    unmet_dependencies,
)


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        # metadata, kraft, transaction, group, eligible leader replicas, share, streams
        ("3.3-IV3", (7, 0, 0, 0, 0, 0, 0)),
        ("3.9", (21, 1, 0, 0, 0, 0, 0)),
        ("4.0-IV3", (25, 1, 2, 1, 0, 0, 0)),
        ("4.1-IV1", (27, 1, 2, 1, 1, 0, 0)),
        ("4.2-IV1", (29, 1, 2, 1, 1, 1, 1)),
        ("4.3", (30, 1, 2, 1, 1, 1, 1)),
    ],
)
def test_a_release_has_its_feature_levels(release: str, levels: tuple[int, ...]) -> None:
    names = (
        "metadata.version",
        "kraft.version",
        "transaction.version",
        "group.version",
        "eligible.leader.replicas.version",
        "share.version",
        "streams.version",
    )
    assert default_levels(metadata_level(release)) == dict(zip(names, levels, strict=True))


def test_a_release_without_suffix_means_its_last_level() -> None:
    assert release_name(metadata_level("4.0")) == "4.0-IV3"


@pytest.mark.parametrize("release", ["", "2.8", "4.4", "4.3-IV1", "nonsense"])
def test_an_unknown_release_is_an_error_that_lists_the_supported_ones(release: str) -> None:
    with pytest.raises(ValueError, match=r"3\.3-IV3 to 4\.3-IV0"):
        metadata_level(release)


@pytest.mark.parametrize(
    ("current", "target", "loses"),
    [(30, 29, True), (29, 28, False), (29, 23, False), (29, 22, True), (23, 23, False)],
)
def test_a_downgrade_past_new_records_loses_metadata(
    current: int, target: int, loses: bool
) -> None:
    assert is_lossy_downgrade(current, target) is loses


def test_eligible_leader_replicas_need_a_metadata_level() -> None:
    name = "eligible.leader.replicas.version"
    assert unmet_dependencies(name, 1, {"metadata.version": 22}) == {"metadata.version": 23}
    assert unmet_dependencies(name, 1, {"metadata.version": 23}) == {}
    assert unmet_dependencies(name, 0, {}) == {}
