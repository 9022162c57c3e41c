"""Addresses of the API: ``path("", include("wfapp.api.urls"))``, as the last entry of its prefix.

Each path exists with ``api/v1/`` in front and without. All else below the prefix is answered 404 in
the API's own words.
"""

from django.urls import URLPattern, URLResolver, include, path, re_path, register_converter
from django.urls.converters import StringConverter

from wfapp.api import activity_paths as activities
from wfapp.api import paths, update_paths
from wfapp.api.views import RpcView, unknown_path


class SegmentConverter(StringConverter):
    """One segment of a path, which may be empty: the service says what is missing."""

    regex = "[^/]*"


register_converter(SegmentConverter, "wf_segment")

_NAMESPACE = "namespaces/<wf_segment:namespace>"
_WORKFLOW = f"{_NAMESPACE}/workflows/<wf_segment:workflowId>"
_ACTIVITY = "activities/<wf_segment:activityId>"

#: Below an activity.
_OF_ACTIVITY: dict[str, type[RpcView]] = {
    "complete": activities.ActivityComplete,
    "fail": activities.ActivityFail,
    "resolve-as-canceled": activities.ActivityResolveAsCanceled,
    "heartbeat": activities.ActivityHeartbeat,
    "pause": activities.ActivityPause,
    "unpause": activities.ActivityUnpause,
    "reset": activities.ActivityReset,
    "update-options": activities.ActivityUpdateOptions,
}

#: Paths that are the same with and without ``api/v1/``.
_SHARED: dict[str, type[RpcView]] = {
    f"{_NAMESPACE}/workflows": paths.Workflows,
    f"{_NAMESPACE}/workflow-count": paths.WorkflowCount,
    _WORKFLOW: paths.Workflow,
    f"{_WORKFLOW}/history": paths.WorkflowHistory,
    f"{_WORKFLOW}/history-reverse": paths.WorkflowHistoryReverse,
    f"{_WORKFLOW}/signal/<wf_segment:signalName>": paths.WorkflowSignal,
    f"{_WORKFLOW}/signal-with-start/<wf_segment:signalName>": paths.WorkflowSignalWithStart,
    f"{_WORKFLOW}/update/<wf_segment:updateName>": update_paths.WorkflowUpdate,
    f"{_WORKFLOW}/query/<wf_segment:queryType>": paths.WorkflowQueryView,
    f"{_WORKFLOW}/cancel": paths.WorkflowCancel,
    f"{_WORKFLOW}/terminate": paths.WorkflowTerminate,
    f"{_WORKFLOW}/reset": paths.WorkflowReset,
    **{f"{_WORKFLOW}/{_ACTIVITY}/{verb}": view for verb, view in _OF_ACTIVITY.items()},
    f"{_NAMESPACE}/activity-complete": activities.ActivityCompleteByToken,
    f"{_NAMESPACE}/activity-fail": activities.ActivityFailByToken,
    f"{_NAMESPACE}/activity-resolve-as-canceled": activities.ActivityResolveAsCanceledByToken,
    f"{_NAMESPACE}/activity-heartbeat": activities.ActivityHeartbeatByToken,
    f"{_NAMESPACE}/activities-deprecated/pause": activities.ActivitiesPause,
    f"{_NAMESPACE}/activities-deprecated/unpause": activities.ActivitiesUnpause,
    f"{_NAMESPACE}/activities-deprecated/reset": activities.ActivitiesReset,
    f"{_NAMESPACE}/activities-deprecated/update-options": activities.ActivitiesUpdateOptions,
    "system-info": paths.SystemInfo,
}
_LONG: dict[str, type[RpcView]] = {
    **_SHARED,
    "namespaces": paths.Namespaces,
    _NAMESPACE: paths.Namespace,
    "cluster-info": paths.ClusterInfo,
}
#: The same with the workflow id in the body.
_BODY: dict[str, type[RpcView]] = {
    f"{_NAMESPACE}/{_ACTIVITY}/{verb}": view for verb, view in _OF_ACTIVITY.items()
}
_SHORT: dict[str, type[RpcView]] = {
    **_SHARED,
    **_BODY,
    "cluster/namespaces": paths.Namespaces,
    f"cluster/{_NAMESPACE}": paths.Namespace,
    "cluster": paths.ClusterInfo,
}

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include([path(route, view.as_view()) for route, view in _LONG.items()])),
    path(
        "api/v1/",
        include([path(route, view.as_view(schema=None)) for route, view in _BODY.items()]),
    ),
    # Described once, under their long names.
    *(path(route, view.as_view(schema=None)) for route, view in _SHORT.items()),
    re_path(r"", unknown_path),
]
