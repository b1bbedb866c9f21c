"""The subcommands of `barnabas`: one module each, whose `command` is the click command.

What a subcommand needs is imported when it runs, so that `barnabas --help` starts quickly.
"""
