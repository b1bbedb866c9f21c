"""Where the files are: a directory, or a bucket of S3."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from barnabas.connect.errors import ConnectError, InvalidConfigError, RetriableError


class ObjectStore(ABC):
    """Objects by name; a name has slashes, and an object is there completely or not at all."""

    @abstractmethod
    def upload(self, file: Path, name: str) -> None:
        """Stores a local file, and replaces an object of that name. The file may be moved."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None: ...

    @abstractmethod
    def get(self, name: str) -> bytes | None: ...

    @abstractmethod
    def delete(self, name: str) -> None:
        """Deletes an object, if it is there."""

    @abstractmethod
    def names(self, prefix: str) -> list[str]:
        """Returns the names of the objects in a directory."""

    @property
    @abstractmethod
    def work_directory(self) -> Path:
        """Where files are written before they are uploaded."""


def open_store(settings: Mapping[str, Any]) -> ObjectStore:
    """Raises ConfigError for an address that is not known."""
    bucket = settings.get("s3.bucket.name")
    if bucket:
        return S3Store(settings, bucket, "", settings["store.url"])
    url = settings["store.url"]
    parts = urlsplit(url)
    match parts.scheme:
        case "s3" | "s3a":
            endpoint = settings["s3.endpoint.url"]
            return S3Store(settings, parts.netloc, parts.path.strip("/"), endpoint)
        case "file" | "":
            if parts.netloc not in ("", "localhost"):
                raise InvalidConfigError(f"store.url {url} names a host; write file:///directory.")
            return DirectoryStore(Path(parts.path if parts.scheme else url))
    raise InvalidConfigError(
        f"store.url {url} has the scheme {parts.scheme}; there are file:// and s3://, and paths."
    )


class DirectoryStore(ObjectStore):
    """A file is written beside the others and renamed, so that readers see it when it is whole."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def work_directory(self) -> Path:
        directory = self._root / "_barnabas" / "tmp"
        with _store_errors(str(directory)):
            directory.mkdir(parents=True, exist_ok=True)
        return directory

    def upload(self, file: Path, name: str) -> None:
        target = self._root / name
        with _store_errors(name):
            target.parent.mkdir(parents=True, exist_ok=True)
            with file.open("rb") as content:
                os.fsync(content.fileno())
            file.replace(target)
            _sync_directory(target.parent)

    def put(self, name: str, content: bytes) -> None:
        file = self.work_directory / uuid.uuid4().hex
        with _store_errors(name):
            file.write_bytes(content)
        self.upload(file, name)

    def get(self, name: str) -> bytes | None:
        try:
            with _store_errors(name):
                return (self._root / name).read_bytes()
        except _MissingError:
            return None

    def delete(self, name: str) -> None:
        with contextlib.suppress(_MissingError), _store_errors(name):
            (self._root / name).unlink()

    def names(self, prefix: str) -> list[str]:
        directory = self._root / prefix
        try:
            with _store_errors(prefix):
                return sorted(f"{prefix}/{entry.name}" for entry in directory.iterdir())
        except _MissingError:
            return []


class S3Store(ObjectStore):
    """A bucket. Uploads are of one object at a time, which appears when it is complete."""

    def __init__(
        self, settings: Mapping[str, Any], bucket: str, prefix: str, endpoint: str | None
    ) -> None:
        from pyarrow import fs

        options: dict[str, Any] = {
            "region": settings.get("s3.region"),
            "force_virtual_addressing": not settings["s3.path.style.access.enabled"],
            "retry_strategy": fs.AwsStandardS3RetryStrategy(
                max_attempts=settings["s3.part.retries"] + 1
            ),
        }
        if settings["aws.access.key.id"]:
            options["access_key"] = settings["aws.access.key.id"]
            options["secret_key"] = settings["aws.secret.access.key"]
        if settings["s3.proxy.url"]:
            options["proxy_options"] = settings["s3.proxy.url"]
        if endpoint:
            parts = urlsplit(endpoint)
            options["scheme"] = parts.scheme or "https"
            options["endpoint_override"] = parts.netloc or parts.path
        self._files = fs.S3FileSystem(**{key: value for key, value in options.items() if value})
        self._root = f"{bucket}/{prefix}".rstrip("/")

    @property
    def work_directory(self) -> Path:
        import tempfile

        directory = Path(tempfile.gettempdir()) / f"barnabas-connect-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory

    def upload(self, file: Path, name: str) -> None:
        with (
            _store_errors(name),
            file.open("rb") as source,
            self._files.open_output_stream(self._path(name)) as target,
        ):
            shutil.copyfileobj(source, target, 8 << 20)
        file.unlink()

    def put(self, name: str, content: bytes) -> None:
        with _store_errors(name), self._files.open_output_stream(self._path(name)) as target:
            target.write(content)

    def get(self, name: str) -> bytes | None:
        try:
            with _store_errors(name), self._files.open_input_stream(self._path(name)) as source:
                return bytes(source.read())
        except _MissingError:
            return None

    def delete(self, name: str) -> None:
        with contextlib.suppress(_MissingError), _store_errors(name):
            self._files.delete_file(self._path(name))

    def names(self, prefix: str) -> list[str]:
        from pyarrow import fs

        selector = fs.FileSelector(self._path(prefix), allow_not_found=True)
        with _store_errors(prefix):
            found = self._files.get_file_info(selector)
        return sorted(
            f"{prefix}/{info.base_name}" for info in found if info.type is fs.FileType.File
        )

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


class _MissingError(ConnectError):
    """There is no such object."""


@contextlib.contextmanager
def _store_errors(name: str) -> Any:
    """Turns errors of a store into those of connectors."""
    try:
        yield
    except FileNotFoundError as error:
        raise _MissingError(f"{name}: {error}") from error
    except PermissionError as error:
        raise ConnectError(f"{name}: {error}") from error
    except OSError as error:
        raise RetriableError(f"{name}: {error}") from error


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
