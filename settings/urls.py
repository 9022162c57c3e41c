"""Addresses of the project: the admin; the REST API at /api/v1 and the root; its schema."""

from django.contrib import admin
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    # Under uvicorn in development; empty unless DEBUG.
    *staticfiles_urlpatterns(),
    # The last one: it answers all that is left.
    path("", include("wfapp.api.urls")),
]
