"""JAAS configurations, in settings and in files."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.authentication.jaas import JaasError, parse_jaas, parse_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_setting_has_one_module_with_options() -> None:
    entry = parse_jaas(f'{PLAIN} required username="al ice" password="a\\"b;\\\\";')
    assert entry.module == PLAIN
    assert entry.module_name == "PlainLoginModule"
    assert entry.flag == "required"
    assert entry.options == {"username": "al ice", "password": 'a"b;\\'}


def test_comments_lines_and_either_quotes_are_allowed() -> None:
    entry = parse_jaas(
        f"""
        {PLAIN} SUFFICIENT  // any flag
            /* the user */ username='alice'
            user_a-b="1" # Kafka's own parser has these too
            useKeyTab=true
        ;
        """
    )
    assert entry.flag == "sufficient"
    assert entry.options == {"username": "alice", "user_a-b": "1", "useKeyTab": "true"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it ends"),
        (PLAIN, "it ends"),
        (f"{PLAIN} mandatory;", "comes one of"),
        (f"{PLAIN} required", "does it end with ;"),
        (f'{PLAIN} required username="a"', "does it end with ;"),
        (f'{PLAIN} required username "a";', "= is expected"),
        (f'{PLAIN} required "a";', "the name of an option"),
        (f"{PLAIN} required port=88;", "needs quotes"),
        (f"{PLAIN} required keyTab=/etc/a;", "not allowed"),
        (f'{PLAIN} required password="secret;', "quotes closed"),
        (f'{PLAIN} required; {PLAIN} required password="secret";', "more than one"),
    ],
)
def test_a_malformed_setting_is_an_error_without_secrets(text: str, problem: str) -> None:
    with pytest.raises(JaasError, match=problem) as raised:
        parse_jaas(text)
    assert "secret" not in str(raised.value)


def test_options_are_not_shown() -> None:
    assert "secret" not in repr(parse_jaas(f'{PLAIN} required password="secret";'))


def test_a_file_has_sections() -> None:
    sections = parse_jaas_file(
        """
        KafkaServer {
            a.PlainLoginModule required username="x";
            b.ScramLoginModule optional;
        };
        sasl_ssl.KafkaServer { c.Krb5LoginModule required; };
        """
    )
    assert [entry.module_name for entry in sections["KafkaServer"]] == [
        "PlainLoginModule",
        "ScramLoginModule",
    ]
    assert sections["sasl_ssl.KafkaServer"][0].module == "c.Krb5LoginModule"


@pytest.mark.parametrize(
    "text", ["KafkaServer", "KafkaServer {", "KafkaServer { };", "A { a b; };", "A {a required;}"]
)
def test_a_malformed_file_is_an_error(text: str) -> None:
    if text == "KafkaServer { };":
        assert parse_jaas_file(text) == {"KafkaServer": []}
        return
    with pytest.raises(JaasError):
        parse_jaas_file(text)


@given(st.text(alphabet='ab.="\\;{} /*#\n', max_size=50))
def test_arbitrary_text_only_fails_with_its_own_error(text: str) -> None:
    for parse in (parse_jaas, parse_jaas_file):
        with contextlib.suppress(JaasError):
            parse(text)
