"""`python -m barnabas.cli` is `barnabas`."""

from barnabas.cli import main

main()
