"""The package that `barnabas connect new` writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.connect_templates import (
    PROJECT,
    README,
    SINK,
    SINK_TEST,
    SOURCE,
    SOURCE_TEST,
)
from barnabas.cli.operations.errors import CommandError, UnreadableFileError

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", re.ASCII)


@dataclass(slots=True, frozen=True)
class ConnectorPackage:
    name: str
    module: str
    class_name: str
    kind: str
    """source or sink"""


def package_of(name: str, kind: str) -> ConnectorPackage:
    """Raises CommandError for a name that no package can have."""
    if not _NAME.fullmatch(name):
        raise CommandError(
            f"{name!r} is no name of a package: use lower case letters, digits and hyphens, such "
            "as acme-files"
        )
    words = re.split(r"[-_]", name)
    if words[-1] != kind:
        words.append(kind)
    class_name = "".join(word.capitalize() for word in words)
    return ConnectorPackage(name, name.replace("-", "_"), class_name, kind)


def write_package(package: ConnectorPackage, directory: Path) -> Iterator[Path]:
    """Yields the files that were written. Raises CommandError if the directory has any."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CommandError(f"{directory} exists already, and is not empty")
    is_source = package.kind == "source"
    contents = {
        "pyproject.toml": PROJECT,
        "README.md": README,
        f"src/{package.module}/__init__.py": SOURCE if is_source else SINK,
        f"tests/test_{package.module}.py": SOURCE_TEST if is_source else SINK_TEST,
    }
    for path, template in contents.items():
        file = directory / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(template, package), encoding="utf-8")
        except OSError as error:
            raise UnreadableFileError(file, error) from None
        yield file


def _filled(template: str, package: ConnectorPackage) -> str:
    is_source = package.kind == "source"
    values = {
        "@package@": package.name,
        "@module@": package.module,
        "@Class@": package.class_name,
        "@kind@": package.kind,
        "@settings@": "directory=/tmp/in topic=rows"
        if is_source
        else "directory=/tmp/out topics=rows",
    }
    for placeholder, value in values.items():
        template = template.replace(placeholder, value)
    return template
