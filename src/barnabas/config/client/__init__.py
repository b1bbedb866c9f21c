"""Settings of producers, consumers and admin clients; brokers do not import them."""
