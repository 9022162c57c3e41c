"""The project as the browser's tests see it: with the static files that DEBUG serves."""

from tests.conformance.http.settings import *  # noqa: F403

DEBUG = True
