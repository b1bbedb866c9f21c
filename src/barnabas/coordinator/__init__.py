"""The coordinators of groups and transactions: state machines kept in internal topics."""
