"""Contracts of the ports, one part of a port a module; `port_contracts` puts them together."""
