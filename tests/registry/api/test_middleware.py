"""Paths and queries with a leading context."""

import pytest

from barnabas.registry.api.middleware import rewrite_path


@pytest.mark.parametrize(
    ("path", "query", "there"),
    [
        ("/subjects/", "", ("/subjects", "")),
        ("/subjects/a%2Fb/versions", "", ("/subjects/a%2Fb/versions", "")),
        ("/contexts", "", ("/contexts", "")),
        ("/contexts/.s", "", ("/contexts/.s", "")),
        ("/contexts/.s/subjects/a%2Fb", "", ("/subjects/:.s:a%2Fb", "")),
        ("/contexts/s/subjects/:.t:a", "", ("/subjects/:.t:a", "")),
        ("/contexts/./subjects/a", "", ("/subjects/a", "")),
        ("/contexts/s/config", "", ("/config/:.s:", "")),
        ("/contexts/s/mode/a", "", ("/mode/:.s:a", "")),
        (
            "/contexts/s/compatibility/subjects/a/versions",
            "",
            ("/compatibility/subjects/:.s:a/versions", ""),
        ),
        ("/contexts/s/schemas/ids/1", "", ("/schemas/ids/1", "subject=%3A.s%3A")),
        (
            "/contexts/s/subjects",
            "deleted=true",
            ("/subjects", "deleted=true&subjectPrefix=%3A.s%3A"),
        ),
    ],
)
def test_a_leading_context_qualifies_the_subject(
    path: str, query: str, there: tuple[str, str]
) -> None:
    assert rewrite_path(path, query) == there
