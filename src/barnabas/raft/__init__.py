"""KRaft consensus as a state machine with no clock, socket or file of its own."""
