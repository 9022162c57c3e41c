"""What the service tells about itself and its namespaces."""

from importlib import metadata

from wfcore.exceptions import InvalidArgumentError, NamespaceNotFoundError
from wfcore.protocol.enums import NamespaceState
from wfcore.protocol.rpc.cluster import (
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    GetClusterInfoResponse,
    GetSystemInfoResponse,
    ListNamespacesRequest,
    ListNamespacesResponse,
)
from wfcore.protocol.rpc.info import (
    ClusterReplicationConfig,
    GetSystemInfoResponseCapabilities,
    NamespaceConfig,
    NamespaceInfo,
    NamespaceInfoCapabilities,
    NamespaceInfoLimits,
    NamespaceReplicationConfig,
)
from wfcore.service.host import Host
from wfcore.service.ports import Namespace

CLUSTER_NAME = "active"
NAMESPACE_PAGE = 1_000


def server_version() -> str:
    """The version of this package."""
    try:
        return metadata.version("wfcore")
    except metadata.PackageNotFoundError:  # run from a source tree
        return "0.0.0"


def system_info() -> GetSystemInfoResponse:
    """What SDKs may rely on."""
    return GetSystemInfoResponse(
        server_version=server_version(),
        capabilities=GetSystemInfoResponseCapabilities(
            signal_and_query_header=True,
            internal_error_differentiation=True,
            activity_failure_include_heartbeat=True,
            encoded_failure_attributes=True,
            upsert_memo=True,
            eager_workflow_start=True,
            sdk_metadata=True,
            count_group_by_execution_status=True,
        ),
    )


def cluster_info() -> GetClusterInfoResponse:
    """Where the service runs, as far as that has a meaning here."""
    return GetClusterInfoResponse(
        server_version=server_version(),
        cluster_id=CLUSTER_NAME,
        cluster_name=CLUSTER_NAME,
        history_shard_count=1,
    )


def describe_namespace(host: Host, request: DescribeNamespaceRequest) -> DescribeNamespaceResponse:
    """A namespace by its name or id."""
    if not request.namespace and not request.id:
        raise InvalidArgumentError("Namespace is empty.")
    if request.namespace:
        found = host.store.namespace(request.namespace)
    else:
        known = (space for space in host.store.namespaces() if space.namespace_id == request.id)
        found = next(known, None)
    if found is None:
        raise NamespaceNotFoundError(request.namespace or request.id)
    return _description(host, found)


def list_namespaces(host: Host, request: ListNamespacesRequest) -> ListNamespacesResponse:
    """All namespaces by name; a full page has a token, which is the name of the last one."""
    size = request.page_size if 0 < request.page_size < NAMESPACE_PAGE else NAMESPACE_PAGE
    after = request.next_page_token.decode(errors="replace")
    later = [space for space in host.store.namespaces() if space.name > after]
    page = later[:size]
    return ListNamespacesResponse(
        namespaces=tuple(_description(host, space) for space in page),
        next_page_token=page[-1].name.encode() if len(page) == size else b"",
    )


def _description(host: Host, space: Namespace) -> DescribeNamespaceResponse:
    return DescribeNamespaceResponse(
        namespace_info=NamespaceInfo(
            name=space.name,
            state=NamespaceState.REGISTERED,
            description=space.description,
            owner_email=space.owner_email,
            id=space.namespace_id,
            capabilities=NamespaceInfoCapabilities(
                eager_workflow_start=True,
                sync_update=True,
                async_update=True,
                reported_problems_search_attribute=True,
            ),
            limits=NamespaceInfoLimits(
                blob_size_limit_error=host.limits.blob_bytes,
                memo_size_limit_error=host.limits.memo_bytes,
            ),
        ),
        config=NamespaceConfig(workflow_execution_retention_ttl=space.retention),
        replication_config=NamespaceReplicationConfig(
            active_cluster_name=CLUSTER_NAME,
            clusters=(ClusterReplicationConfig(cluster_name=CLUSTER_NAME),),
        ),
    )
