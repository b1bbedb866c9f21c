"""Errors that a command prints in one line, without a traceback."""

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.errors import KafkaError


class CommandError(Exception):
    """The command cannot be done as given; the message says why, in one line."""


class UnreadableFileError(CommandError):
    """A file that the command needs cannot be read."""

    def __init__(self, file: object, error: OSError) -> None:
        super().__init__(f"cannot read {file}: {error.strerror}")


def require_utf8(arguments: Sequence[str]) -> None:
    """Raises CommandError if an argument is not UTF-8: no name of Kafka's can be anything else."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            text = argument.encode(errors="surrogateescape")
            raise CommandError(f"the argument {text!r} is not valid UTF-8") from None


class InvalidRegexError(CommandError):
    """A regular expression is not valid; the message is Kafka's."""

    def __init__(self, regex: str, reason: str) -> None:
        super().__init__(f"{regex} is an invalid regex.")
        self.regex = regex
        self.reason = reason


def compile_regex(regex: str) -> "re.Pattern[str]":
    """Raises InvalidRegexError if the regular expression is not valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # [[a] has the same meaning in Java
        try:
            return re.compile(regex)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidRegexError(regex, str(error)) from None


def parse_list_regex(text: str | None) -> "re.Pattern[str] | None":
    """Parses a regular expression of names, where a comma means "or"; nothing gives None."""
    if not text:
        return None
    return compile_regex(text.strip().replace(",", "|").replace(" ", "").strip("\"'"))


def raise_for_errors(
    errors: "Mapping[str, KafkaError | None] | Mapping[tuple[str, int], KafkaError]",
) -> None:
    """Raises CommandError with the errors of names or partitions, if there are any."""
    failed = [
        f"{key if isinstance(key, str) else f'{key[0]}-{key[1]}'}: {error.str()}"
        for key, error in errors.items()
        if error is not None
    ]
    if failed:
        raise CommandError("; ".join(failed))


def describe_error(error: Exception) -> str | None:
    """Returns the message of an expected error, or None for a bug and for a closed output."""
    if isinstance(error, CommandError) or is_a(error, "barnabas.node", "NodeError"):
        return str(error)
    if isinstance(error, BrokenPipeError):
        return None
    if is_a(error, "barnabas.schema_registry.client.errors", "SchemaRegistryError"):
        return str(getattr(error, "error_message"))  # noqa: B009
    if isinstance(error, ImportError) and "pip install" in str(error):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    kafka_error = kafka_error_of(error)
    return kafka_error.str() if kafka_error is not None else None


def kafka_error_of(error: Exception) -> "KafkaError | None":
    """Returns the error of the client if `error` is a KafkaException."""
    if not is_a(error, "barnabas.client.errors", "KafkaException"):
        return None
    kafka_error: KafkaError = error.args[0]
    return kafka_error


def is_a(error: Exception, module: str, name: str) -> bool:
    """An isinstance check without an import: a module that is not loaded has raised nothing."""
    return module in sys.modules and isinstance(error, getattr(sys.modules[module], name))
