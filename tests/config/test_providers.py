"""References to values that are kept elsewhere, in the file of a node and in dynamic settings."""

from pathlib import Path

import pytest
from tests.config.conftest import Configure

from barnabas.config import ConfigError, ConfigResolver, ConfigResourceType, InvalidConfigRequest
from barnabas.config.descriptions import describe_broker

PACKAGE = "org.apache.kafka.common.config.provider"
PASSWORD = "ssl.key.password"
BROKER = (ConfigResourceType.BROKER, "1")
DEFAULT = (ConfigResourceType.BROKER, "")


def providers(**parameters: str) -> dict[str, str | None]:
    """Declares Kafka's three; parameters are like `env_allowlist_pattern`."""
    declared: dict[str, str | None] = {
        "config.providers": "file,dir,env",
        "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
        "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
    }
    for name, value in parameters.items():
        provider, _, parameter = name.partition("_")
        declared[f"config.providers.{provider}.param.{parameter.replace('_', '.')}"] = value
    return declared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secrets.properties").write_text("key=of the file\nthreads=3\nword=many\n")
    (tmp_path / "key").write_text("of the directory\n")
    monkeypatch.setenv("CASTLE_KEY", "of the environment")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:{folder}/secrets.properties:key}", "of the file"),
        ("${dir:{folder}:key}", "of the directory"),
        ("${env:CASTLE_KEY}", "of the environment"),
        ("${env:CASTLE_KEY} and ${dir:{folder}:key}", "of the environment and of the directory"),
        ("${env:CASTLE_NONE}", "${env:CASTLE_NONE}"),
        ("${vault:secret:key}", "${vault:secret:key}"),
        ("${file:{folder}/secrets.properties:none}", "${file:{folder}/secrets.properties:none}"),
        ("${dir:{folder}:../key}", "${dir:{folder}:../key}"),
        ("${CASTLE_KEY}", "${CASTLE_KEY}"),
    ],
)
def test_a_reference_is_replaced_and_an_unknown_one_stays(
    configure: Configure, folder: Path, text: str, expected: str
) -> None:
    text, expected = (each.replace("{folder}", str(folder)) for each in (text, expected))
    settings = configure(providers() | {PASSWORD: text})
    assert settings[PASSWORD].reveal() == expected


def test_without_providers_a_value_stays_as_it_is(configure: Configure, folder: Path) -> None:
    assert configure({PASSWORD: "${env:CASTLE_KEY}"})[PASSWORD].reveal() == "${env:CASTLE_KEY}"


def test_what_is_not_allowed_is_not_read(configure: Configure, folder: Path) -> None:
    allowed = folder / "allowed"
    allowed.mkdir()
    declared = providers(
        file_allowed_paths=str(allowed),
        dir_allowed_paths=str(allowed),
        env_allowlist_pattern="KAFKA_.*",
    )
    for text in (
        f"${{file:{allowed}/../secrets.properties:key}}",
        f"${{dir:{folder}:key}}",
        "${env:CASTLE_KEY}",
    ):
        assert configure(declared | {PASSWORD: text})[PASSWORD].reveal() == text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"config.providers.env.class": "com.example.Vault"}, "com.example.Vault for config"),
        ({"config.providers.file.param.allowed.paths": "secrets"}, "it is not absolute"),
        ({"config.providers.file.param.allowed.paths": "/no/such"}, "it does not exist"),
        ({"config.providers.env.param.allowlist.pattern": "("}, "allowlist.pattern: missing"),
        ({PASSWORD: "${file:/no/such:key}"}, "/no/such cannot be read: No such file"),
        ({PASSWORD: "${env:path:key}"}, "an environment variable has no path"),
    ],
)
def test_a_provider_that_cannot_be_used_is_a_problem(
    configure: Configure, changes: dict[str, str | None], problem: str
) -> None:
    with pytest.raises(ConfigError) as failure:
        configure(providers() | {PASSWORD: "${env:CASTLE_KEY}"} | changes)
    assert problem in str(failure.value)


def test_the_error_of_a_resolved_value_shows_the_reference(
    configure: Configure, folder: Path
) -> None:
    reference = f"${{file:{folder}/secrets.properties:word}}"
    with pytest.raises(ConfigError) as failure:
        configure(providers() | {"num.io.threads": reference})
    assert reference in str(failure.value)
    assert "many" not in str(failure.value)
    resolver = ConfigResolver(configure(providers()), {})
    with pytest.raises(InvalidConfigRequest) as refused:
        resolver.validate_broker({"num.io.threads": reference}, broker_id=1)
    assert "many" not in str(refused.value)


def test_a_dynamic_setting_is_resolved_at_the_broker_and_described_unresolved(
    configure: Configure, folder: Path
) -> None:
    reference = f"${{file:{folder}/secrets.properties:threads}}"
    resolver = ConfigResolver(
        configure(providers() | {"num.io.threads": "2"}), {BROKER: {"num.io.threads": reference}}
    )
    resolver.validate_broker({"num.io.threads": reference}, broker_id=1)
    assert resolver.broker("num.io.threads") == 3
    described = describe_broker(resolver, ["num.io.threads"])[0]
    assert described.synonyms[0].value == reference


def test_a_resolved_dynamic_value_that_is_invalid_is_not_logged(
    configure: Configure, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reference = f"${{file:{folder}/secrets.properties:word}}"
    settings = configure(providers() | {"num.io.threads": "2"})
    resolver = ConfigResolver(settings, {BROKER: {"num.io.threads": reference}})
    assert resolver.broker("num.io.threads") == 2
    assert reference in caplog.text
    assert "many" not in caplog.text


def test_a_controller_accepts_references_that_only_another_node_can_resolve(
    configure: Configure, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"num.io.threads": f"${{file:{folder}/secrets.properties:threads}}"}
    controller = ConfigResolver(configure({"node.id": "7"}), {BROKER: changes, DEFAULT: changes})
    for broker_id in (1, None):
        controller.validate_broker(changes, broker_id=broker_id)
        with pytest.raises(InvalidConfigRequest, match=r"num\.io\.threads"):
            controller.validate_broker({"num.io.threads": "many"}, broker_id=broker_id)
    with pytest.raises(InvalidConfigRequest, match=r"num\.io\.threads"):
        controller.validate_broker(changes, broker_id=7)


def test_dynamic_settings_cannot_declare_providers(configure: Configure, folder: Path) -> None:
    """Who may change settings of the cluster must not be able to read the files of a broker."""
    declared = {name: value for name, value in providers().items() if value is not None}
    reference = f"${{dir:{folder}:key}}"
    dynamic = {**declared, "listener.name.x.ssl.keystore.location": reference}
    resolver = ConfigResolver(configure(), {BROKER: dynamic})
    assert resolver.broker("listener.name.x.ssl.keystore.location") == reference


def test_a_dynamic_setting_that_cannot_be_resolved_counts_as_unset(
    configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    dynamic = {"num.io.threads": "${file:/no/such:key}"}
    settings = configure(providers() | {"num.io.threads": "2"})
    assert ConfigResolver(settings, {BROKER: dynamic}).broker("num.io.threads") == 2
    assert "num.io.threads cannot be resolved: /no/such cannot be read" in caplog.text
