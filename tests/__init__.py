"""The test suite; tests/support holds what several folders share."""
