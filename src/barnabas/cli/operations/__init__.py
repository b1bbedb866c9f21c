"""What the commands do, shared by `barnabas.cli.commands` and `barnabas.cli.kafka`.

Most operations call the admin client and return values. They print nothing, and know no options.
"""
