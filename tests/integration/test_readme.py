"""The README's example runs as it stands there."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from wfapp import wiring
from wfapp.client import get_client
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.testing import WorkflowEnvironment

README = Path(__file__).parents[2] / "README.md"
BODY = 'str: return f"order {order_id} is paid"'


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The example's modules by name; those that others import are there."""
    block = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert block
    parts = re.split(r"# shop/(\w+)\.py\n", block[1])
    sources = dict(zip(parts[1::2], parts[2::2], strict=True))
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    for name in ("activities", "workflows"):
        module = ModuleType(f"shop.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        source = sources[name].replace("str: ...", BODY)
        exec(compile(source, name, "exec"), vars(module))  # noqa: S102 - our own README
    return sources


def test_the_example_runs(db: None, shop: dict[str, str]) -> None:
    modules: Any = sys.modules
    registry = ProjectRegistry(wiring.get_celery_app())
    registry.add_workflow(modules["shop.workflows"].Order)
    registry.add_activity(modules["shop.activities"].charge)
    rows = SimpleNamespace(create=lambda *_: SimpleNamespace(pk=7))
    names = {
        "Order": modules["shop.workflows"].Order,
        "OrderRow": SimpleNamespace(objects=rows),
    }
    with wiring.replaced(registry=registry), WorkflowEnvironment():
        exec(compile(shop["views"], "views", "exec"), names)  # noqa: S102 - our own README
        assert get_client().get_workflow_handle("order-7").result() == "order 7 is paid"


def test_every_link_leads_somewhere() -> None:
    folder = README.parent
    pages = [README, folder / "CONTRIBUTING.md", *folder.glob("docs/**/*.md")]
    broken = [
        f"{page.relative_to(folder)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert broken == []
