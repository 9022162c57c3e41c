"""What the programs call; found by the app's discovery."""

from activities import beat, hang, linger, work

__all__ = ["beat", "hang", "linger", "work"]
