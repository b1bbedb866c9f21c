"""Users with passwords, for PLAIN: of a JAAS line, of `barnabas.sasl.users`, or of a file."""

import hashlib
import hmac
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

log = logging.getLogger(__name__)

_JAAS_PREFIX = "user_"
_CHECK_INTERVAL_S = 1.0
_NOBODY = hashlib.sha256(os.urandom(32)).digest()


class PasswordUsers(Protocol):
    """Knows the passwords of some users."""

    def digest_of(self, user: str) -> bytes | None:
        """Returns the SHA-256 of a user's password, or None if it does not know the user."""


class PasswordVerifier:
    """Verifies passwords against several sources of users; the first that knows a user decides."""

    def __init__(self, sources: Iterable[PasswordUsers]) -> None:
        self._sources = tuple(sources)

    def is_user(self, user: str) -> bool:
        return self._digest_of(user) is not None

    def is_valid(self, user: str, password: str) -> bool:
        """Takes the same time for every user and every password of the same length."""
        expected = self._digest_of(user)
        is_equal = hmac.compare_digest(expected or _NOBODY, _digest(password))
        return is_equal and expected is not None

    def _digest_of(self, user: str) -> bytes | None:
        digests = (source.digest_of(user) for source in self._sources)
        return next((digest for digest in digests if digest is not None), None)


class FixedUsers:
    """Users of the settings."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._digests = {user: _digest(password) for user, password in passwords.items()}

    def digest_of(self, user: str) -> bytes | None:
        return self._digests.get(user)


class UsersFile:
    """Users of a file, which is read again when it has changed."""

    def __init__(self, path: Path, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        """Raises OSError or ValueError if the file cannot be read."""
        self._path = path
        self._monotonic_s = monotonic_s
        self._checked_s = monotonic_s()
        self._modified_ns = path.stat().st_mtime_ns
        self._users = FixedUsers(parse_users(path.read_text().splitlines()))

    def digest_of(self, user: str) -> bytes | None:
        if self._monotonic_s() - self._checked_s >= _CHECK_INTERVAL_S:
            self._checked_s = self._monotonic_s()
            self._reload()
        return self._users.digest_of(user)

    def _reload(self) -> None:
        try:
            modified_ns = self._path.stat().st_mtime_ns
            if modified_ns == self._modified_ns:
                return
            self._modified_ns = modified_ns
            self._users = FixedUsers(parse_users(self._path.read_text().splitlines()))
        except (OSError, ValueError) as error:
            log.warning("The users of %s stay as they were: %s", self._path, error)
        else:
            log.info("Read the users of %s again", self._path)


def jaas_users(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the passwords of the options `user_<name>="password"`."""
    return {
        name.removeprefix(_JAAS_PREFIX): password
        for name, password in options.items()
        if name.startswith(_JAAS_PREFIX)
    }


def parse_users(lines: Iterable[str]) -> dict[str, str]:
    """Parses lines `name:password`; empty lines and those that begin with # are skipped.

    Raises ValueError, which names no password.
    """
    passwords: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        user, _, password = text.partition(":")
        if not user or not password:
            raise ValueError(f"entry {number} is not of the form name:password")
        if user in passwords:
            raise ValueError(f"user {user} is there twice")
        passwords[user] = password
    return passwords


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
