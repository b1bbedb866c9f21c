"""The commands on the registry's page run as they are printed."""

import json
import re
import subprocess
from pathlib import Path

from barnabas.registry.service import SchemaRegistry

PAGE = Path(__file__).parents[2] / "docs" / "schema-registry.md"


def test_the_requests_on_the_page_have_the_printed_response(
    schema_registry: SchemaRegistry,
) -> None:
    text = PAGE.read_text()
    requests = re.findall(r"^```sh\n(curl .*?)^```$", text, re.MULTILINE | re.DOTALL)
    responses = re.findall(r"^```json\n(\{\"id\".*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert requests
    for request, response in zip(requests, responses, strict=True):
        address = schema_registry.url.removeprefix("http://")
        done = subprocess.run(
            ["sh", "-e", "-c", request.replace("localhost:8081", address)],
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert set(json.loads(done.stdout)) == set(json.loads(response))
