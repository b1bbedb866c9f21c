"""kafka-features: describe, upgrade and downgrade feature levels."""

import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import SubcommandParser, connection_from, int32
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.cluster import UpgradeType


@kafka_command
def main(arguments: Sequence[str]) -> int:
    args = _build_parser().parse(arguments)
    status: int = args.act(args)
    return status


def _build_parser() -> SubcommandParser:
    parser = SubcommandParser("kafka-features", "This tool manages feature flags in Kafka.")
    parser.add_connection_options(required=False)
    verbs = parser.add_subcommands()
    describe = verbs.add_parser("describe", help="Describe the features and their levels.")
    describe.add_argument("--node-id", type=int32, help="The node to query. (default: any)")
    describe.set_defaults(act=_with_admin(_describe))
    for name, says in (
        ("upgrade", "Upgrade feature levels."),
        ("downgrade", "Downgrade feature levels."),
        ("disable", "Disable features: downgrade them to level 0."),
    ):
        verb = verbs.add_parser(name, help=says)
        verb.set_defaults(act=_with_admin(_change), verb=name)
        takes = "NAME" if name == "disable" else "NAME=LEVEL"
        verb.add_argument("--feature", action="append", metavar=takes, default=[])
        if name != "disable":
            verb.add_argument("--release-version", help="The release whose feature levels to use.")
            verb.add_argument("--metadata", help="Deprecated: the release of metadata.version.")
        if name != "upgrade":
            verb.add_argument("--unsafe", action="store_true", help="Allow the loss of metadata.")
        verb.add_argument("--dry-run", action="store_true", help="Validate only.")
    add_release_verbs(verbs)
    return parser


def _with_admin(
    work: "Callable[[AioAdminClient, Namespace], Awaitable[int]]",
) -> "Callable[[Namespace], int]":
    def act(args: Namespace) -> int:
        if not args.bootstrap_server and not args.bootstrap_controller:
            raise CommandError(
                "You must specify either --bootstrap-controller or --bootstrap-server."
            )
        return connection_from(args).run(lambda admin: work(admin, args))

    return act


async def _describe(admin: "AioAdminClient", args: Namespace) -> int:
    from barnabas.cli.operations.features import describe_features, format_level

    levels = await describe_features(admin, args.node_id)
    for feature in levels.features:
        min_level, max_level, level = (
            format_level(feature.name, version)
            for version in (feature.min_level, feature.max_level, feature.level)
        )
        epoch = "-" if levels.epoch is None else levels.epoch
        print(
            f"Feature: {feature.name:<42}SupportedMinVersion: {min_level:<17}"
            f"SupportedMaxVersion: {max_level:<17}FinalizedVersionLevel: {level:<17}Epoch: {epoch}"
        )
    return 0


async def _change(admin: "AioAdminClient", args: Namespace) -> int:
    from barnabas.cli.kafka.output import java_message
    from barnabas.cli.operations.features import update_features

    levels = _levels(args)
    outcomes = await update_features(admin, levels, _kind(args), dry_run=args.dry_run)
    participle = args.verb.rstrip("e") + "ed"
    for name in sorted(outcomes):
        error = outcomes[name]
        to = "" if args.verb == "disable" else f" to {levels[name]}"
        if error is not None:
            could = "Can not" if args.dry_run else "Could not"
            print(f"{could} {args.verb} {name}{to}. {java_message(error)}")
        else:
            done = "can be" if args.dry_run else "was"
            print(f"{name} {done} {participle}{to}.")
    failed = sum(error is not None for error in outcomes.values())
    if failed:
        print(f"{failed} out of {len(outcomes)} operation(s) failed.", file=sys.stderr)
    return 1 if failed else 0


def _levels(args: Namespace) -> Mapping[str, int]:
    from barnabas.cli.operations.features import levels_of_release, parse_levels
    from barnabas.metadata.features import METADATA_VERSION

    if args.verb == "disable":
        levels = dict.fromkeys(args.feature, 0)
    elif args.release_version:
        if args.feature or args.metadata:
            raise CommandError("Can not specify `release-version` with other feature flags.")
        of_release = levels_of_release(args.release_version)
        is_upgrade = args.verb == "upgrade"
        levels = {name: level for name, level in of_release.items() if level or not is_upgrade}
    else:
        levels = parse_levels(args.feature)
        if args.metadata:
            print(" `metadata` flag is deprecated and may be removed in a future release.")
            levels[METADATA_VERSION] = levels_of_release(args.metadata)[METADATA_VERSION]
    if not levels:
        raise CommandError(f"You must specify at least one feature to {args.verb}")
    return levels


def _kind(args: Namespace) -> "UpgradeType":
    from barnabas.client.admin.cluster import UpgradeType

    if args.verb == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if args.unsafe else UpgradeType.SAFE_DOWNGRADE


def add_release_verbs(
    verbs: "_SubParsersAction[SubcommandParser]", *, letters: bool = False
) -> None:
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
        help="The feature and its level; can be repeated.",
    )


def _version_mapping(args: Namespace) -> int:
    from barnabas.cli.operations.features import LATEST_RELEASE, levels_of_release
    from barnabas.metadata.features import METADATA_VERSION

    release = args.release_version or LATEST_RELEASE
    for feature, level in levels_of_release(release).items():
        remark = f" ({release})" if feature == METADATA_VERSION else ""
        print(f"{feature}={level}{remark}")
    return 0


def _feature_dependencies(args: Namespace) -> int:
    from barnabas.cli.operations.features import (
        dependencies_of,
        format_level_with_release,
        parse_levels,
    )

    for feature, level in parse_levels(args.feature).items():
        needed = dependencies_of(feature, level)
        named = f"{feature}={format_level_with_release(feature, level)}"
        if not needed:
            print(f"{named} has no dependencies.")
            continue
        print(f"{named} requires:")
        for name, least in needed.items():
            print(f"    {name}={format_level_with_release(name, least)}")
    return 0
