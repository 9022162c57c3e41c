"""Requests and answers about the system and its namespaces."""

from wfcore.protocol.message import Int32, Message
from wfcore.protocol.rpc.info import (
    FailoverStatus,
    GetSystemInfoResponseCapabilities,
    NamespaceConfig,
    NamespaceFilter,
    NamespaceInfo,
    NamespaceReplicationConfig,
    VersionInfo,
)


class GetSystemInfoRequest(Message, frozen=True):
    """Get system info request."""


class GetSystemInfoResponse(Message, frozen=True):
    """Get system info response."""

    server_version: str = ""
    capabilities: GetSystemInfoResponseCapabilities | None = None


class GetClusterInfoRequest(Message, frozen=True):
    """Get cluster info request."""


class GetClusterInfoResponse(Message, frozen=True):
    """Get cluster info response."""

    supported_clients: dict[str, str] = {}
    server_version: str = ""
    cluster_id: str = ""
    version_info: VersionInfo | None = None
    cluster_name: str = ""
    history_shard_count: Int32 = 0
    persistence_store: str = ""
    visibility_store: str = ""
    initial_failover_version: int = 0
    failover_version_increment: int = 0


class DescribeNamespaceRequest(Message, frozen=True):
    """Describe namespace request."""

    namespace: str = ""
    id: str = ""
    weak_consistency: bool = False


class DescribeNamespaceResponse(Message, frozen=True):
    """Describe namespace response."""

    namespace_info: NamespaceInfo | None = None
    config: NamespaceConfig | None = None
    replication_config: NamespaceReplicationConfig | None = None
    failover_version: int = 0
    is_global_namespace: bool = False
    failover_history: tuple[FailoverStatus, ...] = ()


class ListNamespacesRequest(Message, frozen=True):
    """List namespaces request."""

    page_size: Int32 = 0
    next_page_token: bytes = b""
    namespace_filter: NamespaceFilter | None = None


class ListNamespacesResponse(Message, frozen=True):
    """List namespaces response."""

    namespaces: tuple[DescribeNamespaceResponse, ...] = ()
    next_page_token: bytes = b""
