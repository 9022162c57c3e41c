"""The verbs of `manage.py workflow`: what they take, what they do, what they print."""
