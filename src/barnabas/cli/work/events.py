"""What the verifiable commands tell, one line of JSON an event."""

import json
import time
from typing import Any


def emit(name: str, **fields: Any) -> None:
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    print(json.dumps(event, separators=(",", ":")), flush=True)
