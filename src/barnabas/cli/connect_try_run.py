"""Validating a connector and reading its first rows, in this process."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.settings import read_properties
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.preview import Preview, preview_of
from barnabas.connect.model import RequestFailedError
from barnabas.connect.validation import resolve, validate
from barnabas.connect.worker_config import WorkerConfig, WorkerConfigError
from barnabas.schemas import extra_required_by


@dataclass(slots=True, frozen=True)
class TriedConnector:
    """Either what is wrong with settings, or the first rows."""

    setting_errors: Sequence[tuple[str, str]] = ()
    preview: Preview | None = None


def try_connector(
    name: str, config: Mapping[str, str], worker: Path | None, servers: str | None, count: int
) -> TriedConnector:
    """Raises CommandError if the connector cannot be read, and KafkaException."""
    with extra_required_by("barnabas connect try", extra="connect"):
        import_module("pyarrow")
    logging.getLogger("barnabas.connect").setLevel(logging.ERROR)
    settings = _worker_config(worker, servers)
    if "connector.class" not in config:
        raise CommandError(f"{name}: connector.class is missing")
    try:
        resolved = {
            key: text
            for key, text in resolve(config, settings.originals).items()
            if text is not None
        }
        validated = validate(resolved, settings.originals)
        errors = [
            (each.value.name, error) for each in validated.settings for error in each.value.errors
        ]
        if errors:
            return TriedConnector(errors)
        return TriedConnector(preview=preview_of(resolved, settings, count))
    except RequestFailedError as error:
        raise CommandError(error.message) from None
    except ConnectError as error:
        raise CommandError(str(error)) from None


def _worker_config(file: Path | None, servers: str | None) -> WorkerConfig:
    properties = {
        **(read_properties(file) if file is not None else {}),
        **({} if servers is None else {"bootstrap.servers": servers}),
    }
    try:
        return WorkerConfig.parse(properties)
    except WorkerConfigError as error:
        lines = [f"  {problem}" for problem in error.problems]
        subject = "the settings" if file is None else str(file)
        raise CommandError("\n".join([f"{subject} cannot be used:", *lines])) from None
