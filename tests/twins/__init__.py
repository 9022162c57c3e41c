"""Workflows of ours written for Temporal's SDK: only the imports and the activities differ.

Temporal's own Replayer runs them over the histories that ours left, and a test holds the two texts
together.
"""
