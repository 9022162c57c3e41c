"""What the service tells about itself and its namespaces."""

from datetime import timedelta

import pytest

from wfcore.exceptions import InvalidArgumentError, NamespaceNotFoundError
from wfcore.history.limits import Limits
from wfcore.protocol.rpc.cluster import (
    DescribeNamespaceRequest,
    GetClusterInfoRequest,
    GetSystemInfoRequest,
    ListNamespacesRequest,
)
from wfcore.service.ports import Namespace
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.memory_ports import (
    MemoryDispatcher,
    MemoryStore,
    SequentialIds,
    SimulatedClock,
)


@pytest.fixture
def service() -> WorkflowService:
    clock = SimulatedClock()
    orders = Namespace(
        name="orders", namespace_id="an-id", retention=timedelta(days=3), description="shop"
    )
    store = MemoryStore(clock, namespaces=(orders,))
    limits = Limits(blob_bytes=1000)
    return WorkflowService(store, MemoryDispatcher(clock), SequentialIds(), limits)


def test_the_system_promises_what_it_keeps(service: WorkflowService) -> None:
    info = service.get_system_info(GetSystemInfoRequest())
    assert info.server_version
    assert info.capabilities is not None
    assert info.capabilities.encoded_failure_attributes
    assert not info.capabilities.nexus
    assert info.capabilities.eager_workflow_start
    assert service.get_cluster_info(GetClusterInfoRequest()).server_version == info.server_version


def test_a_namespace_is_described_by_name_or_id(service: WorkflowService) -> None:
    by_name = service.describe_namespace(DescribeNamespaceRequest(namespace="orders"))
    assert by_name == service.describe_namespace(DescribeNamespaceRequest(id="an-id"))
    assert by_name.namespace_info is not None
    assert by_name.namespace_info.description == "shop"
    assert by_name.namespace_info.limits is not None
    assert by_name.namespace_info.limits.blob_size_limit_error == 1000
    assert by_name.config is not None
    assert by_name.config.workflow_execution_retention_ttl == timedelta(days=3)
    with pytest.raises(NamespaceNotFoundError):
        service.describe_namespace(DescribeNamespaceRequest(namespace="nowhere"))
    with pytest.raises(InvalidArgumentError):
        service.describe_namespace(DescribeNamespaceRequest())


def test_namespaces_are_listed_in_pages(service: WorkflowService) -> None:
    everything = service.list_namespaces(ListNamespacesRequest())
    names = [space.namespace_info.name for space in everything.namespaces if space.namespace_info]
    assert names == ["default", "orders"]
    assert everything.next_page_token == b""
    first = service.list_namespaces(ListNamespacesRequest(page_size=1))
    assert first.namespaces == everything.namespaces[:1]
    rest = service.list_namespaces(
        ListNamespacesRequest(page_size=1, next_page_token=first.next_page_token)
    )
    assert rest.namespaces == everything.namespaces[1:]
    # A full page has a token, even if nothing follows.
    beyond = service.list_namespaces(
        ListNamespacesRequest(page_size=1, next_page_token=rest.next_page_token)
    )
    assert (beyond.namespaces, beyond.next_page_token) == ((), b"")
