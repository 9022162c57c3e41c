"""Addresses of the project: the admin. The REST API has /api/v1 and the root."""

from django.contrib import admin
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.urls import URLPattern, URLResolver, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
]
# Under uvicorn in development; empty unless DEBUG.
urlpatterns += staticfiles_urlpatterns()
