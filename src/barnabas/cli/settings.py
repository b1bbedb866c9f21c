"""Settings on the command line: files, `--set key=value`, and errors a person can act on."""

from collections.abc import Callable
from pathlib import Path

import click

from barnabas.config import BrokerSettings, ConfigError, parse_properties


def load_settings(file: Path, overrides: dict[str, str]) -> BrokerSettings:
    try:
        # Java's encoding of properties, so that the file means to us what it means to Kafka.
        properties = parse_properties(file.read_text(encoding="latin-1"))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot read {file}: {error}") from None
    return check_settings(properties | overrides)


def check_settings(properties: dict[str, str]) -> BrokerSettings:
    """Typed settings, or one error that names everything wrong with them."""
    try:
        return BrokerSettings.from_properties(properties)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


def override(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--set key=value`, any number of times, as `overrides`."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_overrides,
        help="A setting of server.properties; may be given many times.",
    )(command)


def _parse_overrides(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    overrides: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
        overrides[key.strip()] = value.strip()
    return overrides
