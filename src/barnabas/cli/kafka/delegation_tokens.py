"""kafka-delegation-tokens: create, renew, expire and describe delegation tokens."""

import base64
import binascii
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int64
from barnabas.cli.operations.acls import require_principal
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.delegation_tokens import DelegationTokenDescription

ACTIONS: Final = ("create", "renew", "expire", "describe")

_REQUIRED: Final = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_FORBIDDEN: Final = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renewer-principal", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": (
        "renewer-principal",
        "max-life-time-period",
        "renew-time-period",
        "expiry-time-period",
        "hmac",
    ),
}
_COLUMNS: Final = {
    "TOKENID": 15,
    "HMAC": 30,
    "OWNER": 15,
    "REQUESTER": 15,
    "RENEWERS": 25,
    "ISSUEDATE": 15,
    "EXPIRYDATE": 15,
    "MAXDATE": 15,
}
"""The columns and their least widths."""


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    action = parser.only_one_of(args, *ACTIONS)
    parser.require_options(args, "bootstrap-server", "command-config")
    if action is None:
        parser.usage_error(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    parser.require_options(args, *_REQUIRED[action])
    parser.forbid_together(args, action, *_FORBIDDEN[action])
    act = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[action]
    connection_from(args).run(lambda admin: act(admin, args))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-delegation-tokens",
        "This tool helps to create, renew, expire, or describe delegation tokens.",
    )
    parser.add_connection_options()
    parser.add_flag("--create", "Create a token.")
    parser.add_flag("--renew", "Extend the life of a token.")
    parser.add_flag("--expire", "End a token.")
    parser.add_flag("--describe", "Describe the tokens of the owners, or all that you may see.")
    for name, help_text in (
        ("--renewer-principal", "A principal that may renew the token, as User:name."),
        ("--owner-principal", "An owner, as User:name."),
    ):
        parser.add_value(name, "principal", help_text, action="append", default=None)
    parser.add_value("--hmac", "hmac", "The HMAC of the token, in base64.")
    for name, help_text in (
        ("--max-life-time-period", "How long the token can be renewed; -1: as the brokers allow."),
        ("--renew-time-period", "How long the token lives from now; -1: as the brokers allow."),
        ("--expiry-time-period", "After how long the token ends; -1: at once."),
    ):
        parser.add_value(name, "ms", help_text, type=int64)
    return parser


async def _create(admin: "AioAdminClient", args: Namespace) -> None:
    renewers = [require_principal(renewer) for renewer in args.renewer_principal or ()]
    owners = [require_principal(owner) for owner in args.owner_principal or ()]
    print(
        f"Calling create token operation with renewers :[{', '.join(renewers)}] , "
        f"max-life-time-period :{args.max_life_time_period}"
    )
    token = await admin.create_delegation_token(
        renewers,
        owner=owners[0] if owners else None,
        max_lifetime_ms=args.max_life_time_period,
    )
    print(f"Created delegation token with tokenId : {token.token_id}")
    print()
    _print_tokens([token])


async def _renew(admin: "AioAdminClient", args: Namespace) -> None:
    period_ms = args.renew_time_period
    print(f"Calling renew token operation with hmac :{args.hmac} , renew-time-period :{period_ms}")
    expiry_ms = await admin.renew_delegation_token(_hmac(args), renew_period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expiry_ms)}")


async def _expire(admin: "AioAdminClient", args: Namespace) -> None:
    period_ms = args.expiry_time_period
    print(
        f"Calling expire token operation with hmac :{args.hmac} , expire-time-period :{period_ms}"
    )
    expiry_ms = await admin.expire_delegation_token(_hmac(args), expiry_period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expiry_ms)}")


async def _describe(admin: "AioAdminClient", args: Namespace) -> None:
    owners = [require_principal(owner) for owner in args.owner_principal or ()]
    if owners:
        print(f"Calling describe token operation for owners: [{', '.join(owners)}]")
    else:
        print("Calling describe token operation for current user.")
    # Without owners Kafka's command requests the tokens of nobody, against its own help.
    tokens = await admin.describe_delegation_token(owners or None)
    print(f"Total number of tokens : {len(tokens)}")
    _print_tokens(tokens)


def _print_tokens(tokens: Sequence["DelegationTokenDescription"]) -> None:
    _print_row(*_COLUMNS)
    for token in tokens:
        print()
        _print_row(
            token.token_id,
            token.password,
            token.owner,
            token.requester,
            f"[{', '.join(token.renewers)}]",
            _date(token.issue_timestamp_ms),
            _date(token.expiry_timestamp_ms),
            _date(token.max_timestamp_ms),
        )


def _print_row(*cells: str) -> None:
    print(" ".join(cell.ljust(width) for cell, width in zip(cells, _COLUMNS.values(), strict=True)))


def _date(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%dT%H:%M")


def _hmac(args: Namespace) -> bytes:
    try:
        return base64.b64decode(args.hmac, validate=True)
    except (binascii.Error, ValueError):
        raise CommandError("The HMAC is not base64.") from None
