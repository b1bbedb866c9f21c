"""Config providers: `${name:path:key}` in a value refers to one that is kept elsewhere.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    ssl.keystore.password=${file:/etc/secrets/broker.properties:keystore}
    ssl.key.password=${env:KEY_PASSWORD}

As in Kafka, a value can have several references, they are not nested, and one to an unknown
provider or key stays as it is. Unlike in Kafka, only the file of a node declares providers: who may
change dynamic settings must not be able to read files of the broker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from barnabas.config.errors import InvalidConfig
from barnabas.config.properties import parse_properties
from barnabas.config.setting import Setting, split_list

_PREFIX = "config.providers"
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."

# Returns the value of a path and a key; None if there is none. Raises InvalidConfig.
_Provider: TypeAlias = Callable[[str, str], str | None]


def resolve_references(
    texts: Mapping[str, str], declarations: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Returns the texts with their references replaced, and the problems of those that cannot be.

    `declarations` are the settings of the file, which declare the providers.
    """
    resolved = dict(texts)
    references = {
        name: text for name, text in texts.items() if "${" in text and not name.startswith(_PREFIX)
    }
    if not references or not declarations.get(_PREFIX):
        return resolved, []
    try:
        providers = _providers(declarations)
    except InvalidConfig as error:
        return resolved, [str(error)]
    problems = []
    for name, text in references.items():
        try:
            resolved[name] = _resolve(text, providers)
        except InvalidConfig as error:
            del resolved[name]
            problems.append(f"{name} cannot be resolved: {error}")
    return resolved, problems


def has_reference(text: str) -> bool:
    """Returns whether a value refers to another, of any provider."""
    return _REFERENCE.search(text) is not None


def without_resolved(
    problem: InvalidConfig, setting: Setting, resolved: str, text: str
) -> InvalidConfig:
    """Returns the problem of a resolved value so that it shows the reference only."""
    if resolved == text:
        return problem
    return setting.invalid_value(text, "it refers to a value that is not allowed")


def _resolve(text: str, providers: Mapping[str, _Provider]) -> str:
    def value_of(reference: re.Match[str]) -> str:
        name, path, key = reference.groups()
        provider = providers.get(name)
        value = provider(path or "", key) if provider is not None else None
        return reference[0] if value is None else value

    return _REFERENCE.sub(value_of, text)


def _providers(declarations: Mapping[str, str]) -> dict[str, _Provider]:
    """Raises InvalidConfig if a provider cannot be used."""
    providers = {}
    for name in split_list(declarations[_PREFIX]):
        setting = f"config.providers.{name}.class"
        class_name = declarations.get(setting, "").strip()
        parameters = f"config.providers.{name}.param."
        match class_name.removeprefix(_PACKAGE):
            case "FileConfigProvider":
                providers[name] = _file_provider(_allowed_paths(declarations, parameters))
            case "DirectoryConfigProvider":
                providers[name] = _directory_provider(_allowed_paths(declarations, parameters))
            case "EnvVarConfigProvider":
                providers[name] = _environment_provider(declarations, parameters)
            case _:
                raise InvalidConfig(
                    f"Invalid value {class_name} for configuration {setting}: supported are "
                    f"FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider of "
                    f"{_PACKAGE[:-1]}"
                )
    return providers


def _file_provider(is_allowed: Callable[[str], bool]) -> _Provider:
    """The keys of a properties file."""

    def read(path: str, key: str) -> str | None:
        if not path or not is_allowed(path):
            return None
        try:
            return parse_properties(Path(path).read_text(encoding="utf-8")).get(key)
        except OSError as error:
            raise InvalidConfig(f"{path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise InvalidConfig(f"{path} is not a properties file") from None

    return read


def _directory_provider(is_allowed: Callable[[str], bool]) -> _Provider:
    """The files of a directory: the key is the name of one."""

    def read(path: str, key: str) -> str | None:
        file = Path(path, key)
        if not path or not is_allowed(path) or file.parent != Path(path) or not file.is_file():
            return None
        try:
            return file.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidConfig(f"{file} cannot be read: {error.strerror}") from None
        except ValueError:
            raise InvalidConfig(f"{file} is not text") from None

    return read


def _environment_provider(declarations: Mapping[str, str], parameters: str) -> _Provider:
    """Environment variables whose names match a pattern."""
    name = f"{parameters}allowlist.pattern"
    pattern = declarations.get(name)
    try:
        allowed = re.compile(pattern) if pattern else None
    except re.error as error:
        raise InvalidConfig(f"Invalid value {pattern} for configuration {name}: {error}") from None

    def read(path: str, key: str) -> str | None:
        if path:
            raise InvalidConfig(f"an environment variable has no path: write ${{env:{key}}}")
        if allowed is not None and allowed.fullmatch(key) is None:
            return None
        return os.environ.get(key)

    return read


def _allowed_paths(declarations: Mapping[str, str], parameters: str) -> Callable[[str], bool]:
    """Returns whether a path is one of `allowed.paths` or below it; all are if it is not set."""
    name = f"{parameters}allowed.paths"
    allowed = [Path(os.path.normpath(path)) for path in split_list(declarations.get(name, ""))]
    for path in allowed:
        if not path.is_absolute() or not path.exists():
            reason = "does not exist" if path.is_absolute() else "is not absolute"
            raise InvalidConfig(f"Invalid value {path} for configuration {name}: it {reason}")

    def is_allowed(path: str) -> bool:
        wanted = Path(os.path.normpath(path))
        return not allowed or any(wanted.is_relative_to(each) for each in allowed)

    return is_allowed
