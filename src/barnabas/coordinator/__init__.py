"""Groups and transactions: state machines that live in the broker's internal topics."""
