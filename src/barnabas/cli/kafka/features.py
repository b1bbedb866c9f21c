"""kafka-features: the feature levels of the cluster, and changing them."""

import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Verbs, connect
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.features import UpgradeType


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options().parse(arguments)
    with reasons_to_stderr():
        status: int = chosen.act(chosen)
    return status


def _options() -> Verbs:
    options = Verbs("kafka-features", "This tool manages feature flags in Kafka.")
    options.connection(required=False)
    verbs = options.verbs()
    describe = verbs.add_parser("describe", help="Describe the features and their levels.")
    describe.add_argument("--node-id", type=int, help="The node to ask. (default: any)")
    describe.set_defaults(act=_asking(_describe))
    for name, says in (
        ("upgrade", "Raise the levels of features."),
        ("downgrade", "Lower the levels of features."),
        ("disable", "Do without features: lower them to level 0."),
    ):
        verb = verbs.add_parser(name, help=says)
        verb.set_defaults(act=_asking(_change), verb=name)
        takes = "NAME" if name == "disable" else "NAME=LEVEL"
        verb.add_argument("--feature", action="append", metavar=takes, default=[])
        if name != "disable":
            verb.add_argument("--release-version", help="All features, as in this release.")
            verb.add_argument("--metadata", help="Deprecated: the release of metadata.version.")
        if name != "upgrade":
            verb.add_argument("--unsafe", action="store_true", help="Even if metadata is lost.")
        verb.add_argument("--dry-run", action="store_true", help="Only see whether it could be.")
    add_release_verbs(verbs)
    return options


def _asking(
    work: "Callable[[AioAdminClient, Namespace], Awaitable[int]]",
) -> "Callable[[Namespace], int]":
    def act(chosen: Namespace) -> int:
        if not chosen.bootstrap_server and not chosen.bootstrap_controller:
            raise Refused("You must specify either --bootstrap-controller or --bootstrap-server.")
        return connect(chosen).ask(lambda admin: work(admin, chosen))

    return act


async def _describe(admin: "AioAdminClient", chosen: Namespace) -> int:
    from barnabas.cli.operations.features import describe_features, shown_level

    told = await describe_features(admin, chosen.node_id)
    for feature in told.features:
        least, most, level = (
            shown_level(feature.name, each) for each in (feature.least, feature.most, feature.level)
        )
        epoch = "-" if told.epoch is None else told.epoch
        print(
            f"Feature: {feature.name:<42}SupportedMinVersion: {least:<17}"
            f"SupportedMaxVersion: {most:<17}FinalizedVersionLevel: {level:<17}Epoch: {epoch}"
        )
    return 0


async def _change(admin: "AioAdminClient", chosen: Namespace) -> int:
    from barnabas.cli.kafka.errors import java_message
    from barnabas.cli.operations.features import update_features

    levels = _levels(chosen)
    outcomes = await update_features(admin, levels, _kind(chosen), dry_run=chosen.dry_run)
    participle = chosen.verb.rstrip("e") + "ed"
    for name in sorted(outcomes):
        error = outcomes[name]
        to = "" if chosen.verb == "disable" else f" to {levels[name]}"
        if error is not None:
            could = "Can not" if chosen.dry_run else "Could not"
            print(f"{could} {chosen.verb} {name}{to}. {java_message(error)}")
        else:
            done = "can be" if chosen.dry_run else "was"
            print(f"{name} {done} {participle}{to}.")
    failed = sum(error is not None for error in outcomes.values())
    if failed:
        print(f"{failed} out of {len(outcomes)} operation(s) failed.", file=sys.stderr)
    return 1 if failed else 0


def _levels(chosen: Namespace) -> Mapping[str, int]:
    from barnabas.cli.operations.features import levels_of_release, parse_levels
    from barnabas.metadata.features import METADATA_VERSION

    if chosen.verb == "disable":
        levels = dict.fromkeys(chosen.feature, 0)
    elif chosen.release_version:
        if chosen.feature or chosen.metadata:
            raise Refused("Can not specify `release-version` with other feature flags.")
        of_release = levels_of_release(chosen.release_version)
        is_upgrade = chosen.verb == "upgrade"
        levels = {name: level for name, level in of_release.items() if level or not is_upgrade}
    else:
        levels = parse_levels(chosen.feature)
        if chosen.metadata:
            print(" `metadata` flag is deprecated and may be removed in a future release.")
            levels[METADATA_VERSION] = levels_of_release(chosen.metadata)[METADATA_VERSION]
    if not levels:
        raise Refused(f"You must specify at least one feature to {chosen.verb}")
    return levels


def _kind(chosen: Namespace) -> "UpgradeType":
    from barnabas.client.admin.features import UpgradeType

    if chosen.verb == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if chosen.unsafe else UpgradeType.SAFE_DOWNGRADE


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
    from barnabas.cli.operations.features import NEWEST, levels_of_release
    from barnabas.metadata.features import METADATA_VERSION

    release = chosen.release_version or NEWEST
    for feature, level in levels_of_release(release).items():
        remark = f" ({release})" if feature == METADATA_VERSION else ""
        print(f"{feature}={level}{remark}")
    return 0


def _feature_dependencies(chosen: Namespace) -> int:
    from barnabas.cli.operations.features import dependencies_of, level_text, parse_levels

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
