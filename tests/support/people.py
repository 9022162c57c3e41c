"""Users with the permissions that a test is about."""

from collections.abc import Callable
from typing import Any

import pytest

VIEW = "view_workflowexecution"
VIEW_PAYLOADS = "view_payloads"
OPERATE = "operate"

#: Who there is, by what they may do.
PEOPLE: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "watcher": (VIEW,),
    "reader": (VIEW, VIEW_PAYLOADS),
    "operator": (VIEW, OPERATE),
    "everything": (VIEW, VIEW_PAYLOADS, OPERATE),
}

Person = Callable[[str], Any]


@pytest.fixture
def person(db: None) -> Person:
    """Makes a member of staff, by a name of `PEOPLE`."""
    from django.contrib.auth.models import Permission, User

    def make(name: str) -> Any:
        user = User.objects.create_user(name, password=name, is_staff=True)
        codenames = PEOPLE[name]
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="wfapp", codename__in=codenames)
        )
        assert user.user_permissions.count() == len(codenames)
        return user

    return make
