"""The coordinators of groups and transactions: state machines kept in the broker's internal topics."""
