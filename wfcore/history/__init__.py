"""The pure state machine of a run: requests and facts in, events, state and effects out."""
