"""`authorizer.class.name` selects the authorizer of a node."""

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from barnabas.security.authorizer import loader
from barnabas.security.authorizer.authorizer import Authorizer
from barnabas.security.authorizer.loader import InvalidAuthorizer, load_authorizer
from barnabas.security.authorizer.standard_authorizer import StandardAuthorizer


class ReadOnly(Authorizer):
    """An authorizer of a user."""

    def configure(self, settings: Any) -> None:
        self.settings = settings

    def is_allowed(self, *_: Any) -> bool:
        return False

    def is_allowed_on_any(self, *_: Any) -> bool:
        return False


def load(name: str, **settings: str) -> Authorizer | None:
    return load_authorizer({"authorizer.class.name": name, **settings})


def test_without_a_name_there_is_no_authorizer() -> None:
    assert load_authorizer({}) is None
    assert load("  ") is None


@pytest.mark.parametrize("name", ["acl", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"])
def test_kafkas_authorizer_has_two_names(name: str) -> None:
    assert isinstance(load(name), StandardAuthorizer)


def test_a_class_of_a_module_is_loaded_and_configured() -> None:
    authorizer = load(f"{__name__}:ReadOnly", color="green")
    assert isinstance(authorizer, ReadOnly)
    assert authorizer.settings["color"] == "green"
    assert not authorizer.uses_acls


def test_an_entry_point_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = EntryPoint("read-only", f"{__name__}:ReadOnly", loader.ENTRY_POINT_GROUP)
    installed = EntryPoints([ours])
    monkeypatch.setattr(loader, "entry_points", installed.select)
    assert isinstance(load("read-only"), ReadOnly)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kafka.security.authorizer.AclAuthorizer", "Java classes cannot be loaded"),
        ("no_such_module:Class", "cannot be imported"),
        (f"{__name__}:NoSuchClass", "cannot be imported"),
        ("builtins:dict", "not a subclass"),
    ],
)
def test_other_names_are_errors(name: str, reason: str) -> None:
    with pytest.raises(InvalidAuthorizer, match=reason):
        load(name)


def test_an_error_of_its_settings_is_an_error_of_the_authorizer() -> None:
    with pytest.raises(InvalidAuthorizer, match=r"super\.users"):
        load_authorizer({"authorizer.class.name": "acl", "super.users": "admin"})
