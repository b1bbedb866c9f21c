"""The two verbs that kafka-storage and kafka-features share: no cluster is asked for them."""

from argparse import Namespace
from typing import TYPE_CHECKING

from barnabas.cli.kafka.options import Verbs

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_release_verbs(verbs: "_SubParsersAction[Verbs]", *, letters: bool = False) -> None:
    mapping = verbs.add_parser("version-mapping", help="Show the feature levels of a release.")
    mapping.set_defaults(act=_version_mapping)
    mapping.add_argument(
        "--release-version",
        *(("-r",) if letters else ()),
        help="The release, for instance 4.1 or 4.1-IV0. (default: the newest)",
    )
    dependencies = verbs.add_parser(
        "feature-dependencies", help="Show which other features a feature needs."
    )
    dependencies.set_defaults(act=_feature_dependencies)
    dependencies.add_argument(
        "--feature",
        *(("-f",) if letters else ()),
        action="append",
        required=True,
        metavar="NAME=LEVEL",
        help="The feature and its level; may be given many times.",
    )


def _version_mapping(chosen: Namespace) -> int:
    from barnabas.cli.work.releases import NEWEST, levels_of_release
    from barnabas.metadata.features import METADATA_VERSION

    release = chosen.release_version or NEWEST
    for feature, level in levels_of_release(release).items():
        remark = f" ({release})" if feature == METADATA_VERSION else ""
        print(f"{feature}={level}{remark}")
    return 0


def _feature_dependencies(chosen: Namespace) -> int:
    from barnabas.cli.work.releases import dependencies_of, level_text
    from barnabas.cli.work.storage import parse_levels

    for feature, level in parse_levels(chosen.feature).items():
        needed = dependencies_of(feature, level)
        named = f"{feature}={level_text(feature, level)}"
        if not needed:
            print(f"{named} has no dependencies.")
            continue
        print(f"{named} requires:")
        for name, least in needed.items():
            print(f"    {name}={level_text(name, least)}")
    return 0
