"""Runs protoc for the process that started this one: a JSON line in, a JSON line out.

Run as a script, so that it imports nothing of barnabas. protoc prints its errors to the process's
stderr, which is a file here.
"""

import json
import os
import sys
import tempfile

from grpc_tools import protoc


def main() -> None:
    with tempfile.TemporaryFile(buffering=0) as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())
        for line in sys.stdin:
            errors.seek(0)
            errors.truncate()
            status = protoc.main(["protoc", *json.loads(line)])
            errors.seek(0)
            text = errors.read().decode(errors="replace")
            print(json.dumps({"status": status, "errors": text}), flush=True)


if __name__ == "__main__":
    main()
