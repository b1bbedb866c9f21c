"""Several URLs, retries, credentials, and registries that do not respond."""

import asyncio
import pickle
import socket
import ssl
from typing import Any

import pytest
from tests.client.cluster.harness import CA, CERTIFICATES, OURS
from tests.schema_registry.client.scripted_registry import ScriptedRegistry, scripted_registry

from barnabas.schema_registry import (
    AsyncSchemaRegistryClient,
    RegistryUnreachableError,
    SchemaRegistryClient,
)
from barnabas.schema_registry.client.settings import ClientSettings
from barnabas.schema_registry.client.transport import RetryBackoff
from barnabas.schema_registry.error import SchemaRegistryError
from barnabas.testing.ports import free_port

BUSY = (503, {"error_code": 50301, "message": "busy"})
FINE = (200, ["s"])


def client_of(url: str, **more: Any) -> SchemaRegistryClient:
    conf = {"url": url, "retries.wait.ms": 1} | {k.replace("_", "."): v for k, v in more.items()}
    return SchemaRegistryClient(conf)


def unused_url() -> str:
    return f"http://127.0.0.1:{free_port()}"


def test_a_request_to_a_busy_registry_is_retried(script: ScriptedRegistry) -> None:
    script.will_respond(BUSY, BUSY, FINE)
    assert client_of(script.url).get_subjects() == ["s"]
    assert len(script.requests) == 3


def test_retries_are_limited(script: ScriptedRegistry) -> None:
    script.will_respond(BUSY)
    with pytest.raises(SchemaRegistryError, match=r"busy \(HTTP status code 503, SR code 50301\)"):
        client_of(script.url, max_retries=2).get_subjects()
    assert len(script.requests) == 3


def test_an_error_response_is_not_retried(script: ScriptedRegistry) -> None:
    script.will_respond((422, {"error_code": 42201, "message": "Invalid schema"}))
    with pytest.raises(SchemaRegistryError, match="Invalid schema"):
        client_of(f"{script.url},{script.url}").get_subjects()
    assert len(script.requests) == 1


def test_the_next_url_is_used_if_one_does_not_respond(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)
    assert client_of(f"{unused_url()}, {script.url}/", max_retries=0).get_subjects() == ["s"]


def test_the_next_url_is_used_if_one_is_busy(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)
    with scripted_registry() as busy:
        busy.will_respond(BUSY)
        assert client_of(f"{busy.url},{script.url}", max_retries=1).get_subjects() == ["s"]
        assert len(busy.requests) == 2


def test_the_error_for_an_unreachable_registry_is_one_line() -> None:
    first, second = unused_url(), unused_url()
    with pytest.raises(RegistryUnreachableError) as down:
        client_of(f"{first},{second}", max_retries=1).get_schema(1)
    assert str(down.value) == (
        f"no schema registry responds ({first}: Connection refused; {second}: Connection refused): "
        "is it running?"
    )
    assert isinstance(down.value, SchemaRegistryError)
    assert isinstance(down.value, ConnectionError)
    assert str(pickle.loads(pickle.dumps(down.value))) == str(down.value)


def test_a_response_that_is_not_json_is_an_error_whatever_its_status(
    script: ScriptedRegistry,
) -> None:
    script.will_respond((200, b"<html>Sign in</html>"))
    with pytest.raises(
        SchemaRegistryError, match=r"not a schema registry's response: <html>Sign in"
    ):
        client_of(script.url).get_subjects()


def test_a_registry_that_never_responds_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RegistryUnreachableError, match="timed out"):
            client_of(url, timeout=0.05, max_retries=0).get_subjects()


def test_a_response_of_another_server_is_named_as_such(script: ScriptedRegistry) -> None:
    script.will_respond((404, b"<html>nginx</html>"))
    with pytest.raises(
        SchemaRegistryError, match=r"not a schema registry's response: <html>"
    ) as odd:
        client_of(script.url).get_subjects()
    assert odd.value.error_code == SchemaRegistryError.UNKNOWN


@pytest.mark.parametrize("in_url", [False, True])
def test_a_user_is_sent_with_each_request(in_url: bool, script: ScriptedRegistry) -> None:
    script.will_respond(FINE)
    if in_url:
        client = client_of(script.url.replace("http://", "http://me:s%3Acret@"))
    else:
        client = client_of(script.url, basic_auth_user_info="me:s:cret")
    client.get_subjects()
    assert script.requests[0].headers["Authorization"] == "Basic bWU6czpjcmV0"


def bearer(source: str, **more: Any) -> dict[str, Any]:
    conf = {"bearer.auth.credentials.source": source, "bearer.auth.logical.cluster": "lsrc-1"}
    return conf | {f"bearer.auth.{name.replace('_', '.')}": item for name, item in more.items()}


def test_a_token_is_sent_with_each_request(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)
    conf = bearer("STATIC_TOKEN", token="t", identity_pool_id=["a", "b"])
    SchemaRegistryClient({"url": script.url} | conf).get_subjects()
    headers = script.requests[0].headers
    assert headers["Authorization"] == "Bearer t"
    assert headers["target-sr-cluster"] == "lsrc-1"
    assert headers["Confluent-Identity-Pool-Id"] == "a,b"


def test_a_function_provides_the_token(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)

    def give(conf: dict[str, str]) -> dict[str, str]:
        return {"bearer.auth.token": conf["word"], "bearer.auth.logical.cluster": "c"}

    conf = bearer("CUSTOM", custom_provider_function=give, custom_provider_config={"word": "x"})
    del conf["bearer.auth.logical.cluster"]
    SchemaRegistryClient({"url": script.url} | conf).get_subjects()
    assert script.requests[0].headers["Authorization"] == "Bearer x"


def test_a_token_is_fetched_once_during_its_lifetime(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)
    with scripted_registry() as issuer:
        issuer.will_respond((200, {"access_token": "fresh", "expires_in": 3600}))
        conf = bearer(
            "OAUTHBEARER",
            client_id="id",
            client_secret="secret",
            scope="schemas",
            issuer_endpoint_url=f"{issuer.url}/token",
        )
        client = SchemaRegistryClient({"url": script.url} | conf)
        client.get_subjects()
        client.get_subjects()
        (asked,) = issuer.requests
    assert (asked.method, asked.path) == ("POST", "/token")
    assert asked.body == "grant_type=client_credentials&scope=schemas"
    assert asked.headers["Authorization"] == "Basic aWQ6c2VjcmV0"
    assert script.requests[1].headers["Authorization"] == "Bearer fresh"


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, "url is missing"),
        ({"url": "localhost:8081"}, "must begin with http"),
        ({"url": "mock://x"}, "must begin with http"),
        ({"url": "http://x", "max.retrys": 1}, "did you mean max.retries?"),
        ({"url": "http://x", "basic.auth.user.info": "me"}, "user:password"),
        ({"url": "http://a:b@x", "basic.auth.user.info": "c:d"}, "keep one"),
        ({"url": "http://x", "ssl.key.location": "k"}, "ssl.certificate.location is missing"),
        ({"url": "http://x"} | bearer("STATIC_TOKEN"), "bearer.auth.token is missing"),
        ({"url": "http://x"} | bearer("MAGIC"), "must be STATIC_TOKEN"),
        ({"url": 3}, "must be a str"),
        ({"url": "http://x", "timeout": "soon"}, "timeout must be a number"),
        ({"url": "http://x", "timeout": [1]}, "timeout must be a number"),
    ],
)
def test_the_error_for_an_invalid_setting_names_it(conf: dict[str, Any], expected: str) -> None:
    with pytest.raises((ValueError, TypeError)) as wrong:
        SchemaRegistryClient(conf)
    assert expected in str(wrong.value)


def test_numbers_may_be_text_as_in_options_of_spark() -> None:
    texts = {"url": "http://x", "timeout": "2.5", "max.retries": "7", "retries.wait.ms": "1"}
    settings = ClientSettings.read(texts)
    assert (settings.timeout_s, settings.backoff) == (2.5, RetryBackoff(7, 1, 20_000))


def test_a_registry_and_its_client_check_each_others_certificates() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    context.load_verify_locations(CA)
    context.verify_mode = ssl.CERT_REQUIRED
    ours = {"ssl_certificate_location": str(OURS)}
    with scripted_registry(context) as script:
        script.will_respond(FINE)
        trusted = client_of(script.url, ssl_ca_location=str(CA), **ours)
        assert trusted.get_subjects() == ["s"]
        assert client_of(script.url, ssl_ca_location=False, **ours).get_subjects() == ["s"]
        with pytest.raises(RegistryUnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            client_of(script.url, max_retries=0, **ours).get_subjects()
        with pytest.raises(RegistryUnreachableError):
            client_of(script.url, max_retries=0, ssl_ca_location=str(CA)).get_subjects()


def test_waits_between_retries_grow_to_a_limit() -> None:
    waits = list(RetryBackoff(retries=8, wait_ms=100, max_wait_ms=400).waits_s())
    assert len(waits) == 8
    assert all(0 <= wait <= 0.4 for wait in waits)
    assert waits[0] <= 0.1


def test_the_async_client_sends_the_same_requests(script: ScriptedRegistry) -> None:
    script.will_respond(FINE)

    async def ask() -> list[str]:
        async with AsyncSchemaRegistryClient({"url": script.url}) as client:
            return await client.get_subjects(subject_prefix="s")

    assert asyncio.run(ask()) == ["s"]
    assert "subjectPrefix=s" in script.paths[0]
