"""What the commands do, whoever asks: through the admin client, with values for answers.

`barnabas.cli` shows them to people, `barnabas.cli.kafka` in the words of Kafka's own commands.
Nothing here prints, and nothing knows an option's name.
"""
