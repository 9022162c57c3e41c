"""Ids that hold a slash: found by the path as it was sent, which servers decode before routing.

``workflows/a%2Fb`` names the workflow ``a/b``. Django sees ``workflows/a/b`` and would find another
route, or none, so a path with an encoded slash is resolved again with a mark in the slash's place.
The server must hand on the raw path: ASGI does (``raw_path``), of WSGI servers those that set
RAW_URI or REQUEST_URI (gunicorn, uWSGI, mod_wsgi). Without it such ids can't be reached.
"""

from urllib.parse import unquote, urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve

#: A code point that Unicode reserves for use within a program: no text contains it.
_SLASH = "\ufdd0"
_VARIABLES = ("RAW_URI", "REQUEST_URI")


def has_encoded_slash(request: HttpRequest) -> bool:
    """Whether a segment of the path that was sent holds a slash."""
    return "%2f" in _raw_path(request).lower()


def resolve_raw(request: HttpRequest) -> ResolverMatch | None:
    """The route of the path as it was sent, with slashes in its arguments; None without one."""
    raw = _raw_path(request)
    if _SLASH in unquote(raw):
        return None
    path = unquote(raw.replace("%2f", "%2F").replace("%2F", _SLASH))
    prefix = request.META.get("SCRIPT_NAME", "")
    if prefix and path.startswith(prefix):
        path = path[len(prefix) :]
    try:
        match = resolve(path, getattr(request, "urlconf", None))
    except Resolver404:
        return None
    match.kwargs = {
        key: value.replace(_SLASH, "/") if isinstance(value, str) else value
        for key, value in match.kwargs.items()
    }
    return match


def _raw_path(request: HttpRequest) -> str:
    scope = getattr(request, "scope", None)
    if scope is not None:
        raw: bytes = scope.get("raw_path") or b""
        return raw.decode("ascii", errors="replace")
    for name in _VARIABLES:
        target: str = request.META.get(name, "")
        if target:
            return urlsplit(target).path
    return ""
