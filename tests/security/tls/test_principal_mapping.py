"""ssl.principal.mapping.rules, with the examples of Kafka's documentation."""

import pytest

from barnabas.security.tls.principal_mapping import (
    MappingRuleError,
    NoMatchingRuleError,
    PrincipalMapper,
)

RULES = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,"
    r"DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=kafka,O=Castle", "CN=kafka,O=Castle"),
        ("", "CN=kafka,O=Castle", "CN=kafka,O=Castle"),
        (RULES, "CN=kafka,OU=ServiceUsers,O=Castle", "kafka"),
        (RULES, "CN=Admin1,OU=Eng,O=Castle,L=l,ST=s,C=C", "admin1@eng"),
        (RULES, "OU=X,CN=app.One", "APP.ONE"),
        (RULES, "OU=X", "OU=X"),
        ("RULE:^CN=([^,]+),.*$/$1/L,DEFAULT", "CN=App,O=x", "app"),
        (r"RULE:^CN=(.*),O=a\/b$/$1\/c/", "CN=x,O=a/b", "x/c"),
        ("RULE:^CN=(.*)$/$1$2$x/", "CN=x", "x$2$x"),
        ("RULE:^CN=(.*)$/$12/", "CN=x", "x2"),
        (r"RULE:^CN=(.*)$/\$1/", "CN=x", "$1"),
        ("RULE:CN=(.*)/$1/ , DEFAULT", "O=x", "O=x"),
        ("RULE:CN=(.*)/$1/\nDEFAULT", "CN=x", "x"),
        ("RULE:^CN=(a)?(.*)$/[$1]$2/", "CN=x", "[]x"),
    ],
)
def test_the_first_rule_that_matches_the_whole_subject_gives_the_name(
    rules: str, subject: str, name: str
) -> None:
    assert PrincipalMapper(rules).user_name(subject) == name


@pytest.mark.parametrize("subject", ["O=x", "xCN=x", "CN=x,O=y"])
def test_a_subject_that_no_rule_matches_as_a_whole_has_no_name(subject: str) -> None:
    with pytest.raises(NoMatchingRuleError, match=f"matches {subject}"):
        PrincipalMapper("RULE:CN=([a-z]*)/$1/").user_name(subject)


@pytest.mark.parametrize(
    "rules", ["CASTLE", "RULE:x", "RULE:x/y", "RULE:x/y/Z", "DEFAULT,x", "RULE:(/x/", "DEFAULTS"]
)
def test_a_malformed_rule_is_an_error_that_shows_it(rules: str) -> None:
    with pytest.raises(MappingRuleError, match="Invalid rule"):
        PrincipalMapper(rules)
