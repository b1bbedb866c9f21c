"""Option parsers of Kafka's commands, which come in two kinds.

Most commands have flat options (Kafka uses joptsimple): errors and `--help` print the whole help to
standard error and exit with status 1. Commands with subcommands, such as `kafka-features describe`,
(argparse4j) print help to standard output and exit with status 0.
"""

import re
import sys
from argparse import SUPPRESS, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from barnabas import __version__
from barnabas.cli.kafka.clients import drop_unknown_settings
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.settings import read_properties

if TYPE_CHECKING:
    from argparse import _SubParsersAction

KAFKA_VERSION = "4.3.1"
"""The Kafka release whose options and outputs these are."""

VERSION = f"{KAFKA_VERSION} (Barnabas {__version__})"


_JOPT_SIMPLE = (
    (r"unrecognized arguments: -*([^ =]+)", "{} is not a recognized option"),
    (r"argument --(\S+): invalid \S+ value: '(.*)'", "Cannot parse argument '{1}' of option {0}"),
    (r"argument --(\S+): invalid choice: '(.*?)'", "Cannot parse argument '{1}' of option {0}"),
    (r"argument --(\S+): expected one argument", "Option {} requires an argument"),
)
"""Error messages of argparse, and those of Kafka's commands."""


class FlatParser(ArgumentParser):
    """Parser of a command without subcommands. A long option can have one dash or two."""

    def __init__(self, name: str, purpose: str) -> None:
        super().__init__(
            prog=name,
            description=purpose,
            usage=SUPPRESS,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_Help,
        )
        self.add_argument("--help", action="store_true", help="Print usage information.")
        self.add_argument("--version", action="store_true", help="Display Kafka version.")

    def add_flag(self, name: str, help_text: str) -> None:
        self.add_argument(name, action="store_true", help=help_text)

    def add_value(self, name: str, metavar: str, help_text: str, **kwargs: Any) -> None:
        self.add_argument(name, metavar=f"<{metavar}>", help=help_text, **kwargs)

    def add_connection_options(self, *, controllers: bool = False) -> None:
        """Adds the options that `connection_from` reads."""
        self.add_value("--bootstrap-server", "host:port,...", "The brokers to connect to.")
        if controllers:
            help_text = "The controllers to connect to, instead of brokers."
            self.add_value("--bootstrap-controller", "host:port,...", help_text)
        self.add_value("--command-config", "file", "A file of settings for the admin client.")

    def parse(self, arguments: Sequence[str] | None) -> Namespace:
        words = sys.argv[1:] if arguments is None else list(arguments)
        if not words:
            self.usage_error(self.description or "")
        args = self.parse_args([self._with_two_dashes(argument) for argument in words])
        if args.help:
            self.usage_error(self.description or "")
        if args.version:
            print(VERSION)
            sys.exit(0)
        return args

    def usage_error(self, message: str) -> NoReturn:
        """Prints the message and the help, and exits with status 1."""
        print(message, file=sys.stderr)
        self.description = None
        self.print_help(sys.stderr)
        sys.exit(1)

    def error(self, message: str) -> NoReturn:
        for pattern, words in _JOPT_SIMPLE:
            if match := re.match(pattern, message):
                self.usage_error(words.format(*match.groups()))
        self.usage_error(message)

    def require_options(self, args: Namespace, *names: str) -> None:
        for name in names:
            if not is_given(args, name):
                self.usage_error(f'Missing required argument "[{name}]"')

    def forbid_together(self, args: Namespace, used: str, *names: str) -> None:
        """Fails if `used` is given together with one of `names`."""
        for name in names:
            if is_given(args, used) and is_given(args, name):
                self.usage_error(f'Option "[{used}]" can\'t be used with option "[{name}]"')

    def only_one_of(self, args: Namespace, *names: str) -> str | None:
        """Returns the only given option; None for none or several."""
        present = [name for name in names if is_given(args, name)]
        return present[0] if len(present) == 1 else None

    def _with_two_dashes(self, argument: str) -> str:
        name = argument.partition("=")[0]
        is_option = f"-{name}" in self._option_string_actions
        if is_option and len(name) > 2 and not name.startswith("--"):
            return f"-{argument}"
        return argument


class SubcommandParser(ArgumentParser):
    """Parser of a command with subcommands, or of a subcommand."""

    def __init__(self, prog: str, description: str | None = None, **kwargs: Any) -> None:
        super().__init__(prog=prog, description=description, formatter_class=_Help, **kwargs)

    def add_connection_options(self, *, required: bool = True, letters: bool = False) -> None:
        """Adds the options that `connection_from` reads; with `letters`, also -b, -C and -c."""
        bootstrap = self.add_mutually_exclusive_group(required=required)

        def value(parser: Any, name: str, letter: str, metavar: str, help_text: str) -> None:
            names = (name, letter) if letters else (name,)
            parser.add_argument(*names, metavar=metavar, help=help_text)

        value(bootstrap, "--bootstrap-server", "-b", "HOST:PORT,...", "The brokers to connect to.")
        help_text = "The controllers to connect to, instead of brokers."
        value(bootstrap, "--bootstrap-controller", "-C", "HOST:PORT,...", help_text)
        value(self, "--command-config", "-c", "FILE", "A file of settings for the admin client.")

    def add_subcommands(self) -> "_SubParsersAction[SubcommandParser]":
        return self.add_subparsers(required=True, metavar="VERB", parser_class=SubcommandParser)

    def parse(self, arguments: Sequence[str] | None) -> Namespace:
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        sys.exit(1)


class PlainParser(SubcommandParser):
    """Parser of an argparse4j command without subcommands. Its help exits with status 1."""

    def exit(self, status: int = 1, message: str | None = None) -> NoReturn:
        super().exit(status, message)


def connection_from(args: Namespace) -> Connection:
    """Returns the connection that the options name."""
    file = args.command_config
    return Connection(
        servers=args.bootstrap_server,
        controllers=getattr(args, "bootstrap_controller", None),
        settings=drop_unknown_settings(read_properties(file)) if file else {},
    )


def int32(text: str) -> int:
    """Parses an option that is an int in Java. Raises ValueError if it does not fit."""
    return _parse_integer(text, 31)


def int64(text: str) -> int:
    """Parses an option that is a long in Java. Raises ValueError if it does not fit."""
    return _parse_integer(text, 63)


def _parse_integer(text: str, bits: int) -> int:
    number = int(text)
    if not -(1 << bits) <= number < 1 << bits:
        raise ValueError(f"{text} does not fit into {bits + 1} bits")
    return number


def is_given(args: Namespace, name: str) -> bool:
    value = getattr(args, name.replace("-", "_"))
    return value is not None and value is not False


class _Help(HelpFormatter):
    """Wide enough for names such as --replica-alter-log-dirs-throttle."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=44, width=100)
