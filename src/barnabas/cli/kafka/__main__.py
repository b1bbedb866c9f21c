"""`python -m barnabas.cli.kafka kafka-topics --list` runs a command without its script."""

import sys
from importlib import import_module

from barnabas.cli.kafka import COMMANDS

if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(f"Give a command, one of {', '.join(COMMANDS)}.")
sys.exit(import_module(f"barnabas.cli.kafka.{COMMANDS[sys.argv[1]]}").main(sys.argv[2:]))
