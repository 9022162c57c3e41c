"""One entity of a run each: its transitions as functions of a change and a request or command."""
