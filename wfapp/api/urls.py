"""Addresses of the API: ``path("", include("wfapp.api.urls"))``, as the last entry of its prefix.

Each path exists with ``api/v1/`` in front and without. All else below the prefix is answered 404 in
the API's own words.
"""

from django.urls import URLPattern, URLResolver, include, path, re_path, register_converter
from django.urls.converters import StringConverter

from wfapp.api import paths
from wfapp.api.views import unknown_path


class SegmentConverter(StringConverter):
    """One segment of a path, which may be empty: the service says what is missing."""

    regex = "[^/]*"


register_converter(SegmentConverter, "wf_segment")

_WORKFLOW = "namespaces/<wf_segment:namespace>/workflows/<wf_segment:workflowId>"
_workflows: list[URLPattern | URLResolver] = [
    path("namespaces/<wf_segment:namespace>/workflows", paths.Workflows.as_view()),
    path("namespaces/<wf_segment:namespace>/workflow-count", paths.WorkflowCount.as_view()),
    path(_WORKFLOW, paths.Workflow.as_view()),
    path(f"{_WORKFLOW}/history", paths.WorkflowHistory.as_view()),
    path(f"{_WORKFLOW}/history-reverse", paths.WorkflowHistoryReverse.as_view()),
    path(f"{_WORKFLOW}/signal/<wf_segment:signalName>", paths.WorkflowSignal.as_view()),
    path(
        f"{_WORKFLOW}/signal-with-start/<wf_segment:signalName>",
        paths.WorkflowSignalWithStart.as_view(),
    ),
    path(f"{_WORKFLOW}/query/<wf_segment:queryType>", paths.WorkflowQueryView.as_view()),
    path(f"{_WORKFLOW}/cancel", paths.WorkflowCancel.as_view()),
    path(f"{_WORKFLOW}/terminate", paths.WorkflowTerminate.as_view()),
    path("system-info", paths.SystemInfo.as_view()),
]
_under_version: list[URLPattern | URLResolver] = [
    *_workflows,
    path("namespaces", paths.Namespaces.as_view()),
    path("namespaces/<wf_segment:namespace>", paths.Namespace.as_view()),
    path("cluster-info", paths.ClusterInfo.as_view()),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include(_under_version)),
    *_workflows,
    path("cluster/namespaces", paths.Namespaces.as_view()),
    path("cluster/namespaces/<wf_segment:namespace>", paths.Namespace.as_view()),
    path("cluster", paths.ClusterInfo.as_view()),
    re_path(r"", unknown_path),
]
