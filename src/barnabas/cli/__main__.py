"""`python -m barnabas.cli` runs `barnabas`."""

from barnabas.cli import main

main()
