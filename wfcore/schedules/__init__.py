"""When something is to happen again and again."""
