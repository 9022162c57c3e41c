"""The calls of the engine, one method each, over the ports that a host provides."""
