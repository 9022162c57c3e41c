"""The frame of the project: settings, contracts, packaging, and what no file may hold."""

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery import Celery
from celery.app.utils import find_app
from django.conf import settings
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import wfapp
import wfcore
from settings.databases import from_url, sqlite
from tests import conftest
from tools.services import GivenServer, Services

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "settings.production",
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ALLOWED_HOSTS": "example.org",
    "DATABASE_URL": "postgres://user:secret@db/name",
    "REDIS_URL": "redis://broker:6379/1",
}


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False
    )


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, *arguments, **environment)


def tracked_files() -> list[Path]:
    """What git has, or would take; everything there is where the sources come without git."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed.returncode == 0:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        files = [path for path in ROOT.rglob("*") if not {".venv", ".git"} & set(path.parts)]
    return [path for path in files if path.is_file()]


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


class TestSettings:
    @pytest.mark.timeout(120)
    def test_the_checks_pass_locally_with_nothing_in_the_environment(self) -> None:
        answer = python("manage.py", "check", "--fail-level", "WARNING")
        assert answer.returncode == 0, answer.stderr

    @pytest.mark.timeout(120)
    def test_the_deployment_checks_pass_in_production(self) -> None:
        command = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
        answer = python(*command, **PRODUCTION)
        assert answer.returncode == 0, answer.stderr

    @pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL"])
    def test_production_names_a_variable_that_is_missing(self, name: str) -> None:
        environment = {key: value for key, value in PRODUCTION.items() if key != name}
        answer = python("-c", "import settings.production", **environment)
        assert answer.returncode != 0
        assert f"Set the {name} environment variable" in answer.stderr

    def test_local_settings_take_servers_from_the_environment(self) -> None:
        code = (
            "import json, settings.local as s; "
            "print(json.dumps([s.DATABASES['default']['ENGINE'], s.CELERY_BROKER_URL]))"
        )
        alone = json.loads(python("-c", code).stdout)
        assert alone == ["django.db.backends.sqlite3", "memory://"]
        given = python("-c", code, DATABASE_URL="postgres://u:p@h/n", REDIS_URL="redis://h/1")
        assert json.loads(given.stdout) == ["django.db.backends.postgresql", "redis://h/1"]

    def test_sqlite_writes_ahead_and_takes_its_lock_at_once(self) -> None:
        options = sqlite("file.sqlite3")["OPTIONS"]
        assert options["transaction_mode"] == "IMMEDIATE"
        assert "journal_mode=WAL" in options["init_command"]
        assert from_url("sqlite:///file.sqlite3")["OPTIONS"] == options

    def test_postgres_keeps_connections_or_pools_them_but_not_both(self) -> None:
        kept = from_url("postgres://u:p@h:5433/n")
        assert (kept["PORT"], kept["CONN_HEALTH_CHECKS"]) == (5433, True)
        assert kept["CONN_MAX_AGE"] > 0
        pooled = from_url("postgres://u:p@h/n?connect_timeout=3", pool=True)
        assert pooled["OPTIONS"]["pool"]["max_size"] > 0
        assert pooled["OPTIONS"]["connect_timeout"] == 3
        assert kept["OPTIONS"]["connect_timeout"] == pooled["OPTIONS"]["pool"]["timeout"] == 2
        assert (pooled["CONN_MAX_AGE"], pooled["CONN_HEALTH_CHECKS"]) == (0, True)

    def test_celery_finds_its_app_under_the_name_of_the_project(self) -> None:
        app = find_app("settings")
        assert isinstance(app, Celery)
        assert app.main == "settings"
        assert find_app("settings.celery") is app

    def test_celery_takes_json_only(self) -> None:
        conf = find_app("settings").conf
        assert list(conf.accept_content) == ["json"]
        assert list(conf.result_accept_content) == ["json"]
        assert {conf.task_serializer, conf.result_serializer, conf.event_serializer} == {"json"}
        assert conf.task_ignore_result is True

    def test_the_engine_is_an_installed_app_with_a_setting_of_its_own(self) -> None:
        assert "wfapp" in settings.INSTALLED_APPS
        assert isinstance(settings.WORKFLOWS, dict)


class TestArchitecture:
    @pytest.mark.timeout(120)
    def test_the_import_contracts_hold(self) -> None:
        answer = run(str(Path(sys.executable).with_name("lint-imports")))
        assert answer.returncode == 0, answer.stdout

    @pytest.mark.timeout(180)
    @pytest.mark.parametrize(
        ("module", "line", "contract"),
        [
            ("wfcore/history/_probe.py", "import django", "wfcore knows no framework"),
            ("wfcore/history/_probe.py", "import random", "history is pure"),
            ("wfcore/history/_probe.py", "import wfcore.replay", "history and replay never meet"),
            ("wfcore/history/_probe.py", "import wfcore.replay", "only worker and testing replay"),
            ("wfcore/protocol/_probe.py", "import wfcore.history", "layers of wfcore"),
            ("wfcore/surprise.py", "", "layers of wfcore"),
            ("wfapp/conf.py", "import wfapp.apps", "layers of wfapp"),
            ("wfapp/surprise.py", "", "layers of wfapp"),
            ("wfapp/apps.py", "import settings", "wfapp knows no project"),
        ],
    )
    def test_a_broken_contract_is_reported(
        self, tmp_path: Path, module: str, line: str, contract: str
    ) -> None:
        for package in ("wfcore", "wfapp", "settings"):
            shutil.copytree(ROOT / package, tmp_path / package)
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        with (tmp_path / module).open("a") as probe:
            probe.write(f"{line}\n")
        answer = run(str(Path(sys.executable).with_name("lint-imports")), cwd=tmp_path)
        assert answer.returncode != 0
        assert re.search(rf"^{re.escape(contract)}.* BROKEN", answer.stdout, re.MULTILINE)

    def test_what_a_package_offers_exists(self) -> None:
        for package in (wfcore, wfapp):
            for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not found.ispkg or ".migrations" in found.name or ".management" in found.name:
                    continue
                source = text_of(
                    Path(found.module_finder.path) / found.name.split(".")[-1] / "__init__.py"
                )
                if not re.search(r"^from \S+ import", source or "", re.MULTILINE):
                    continue
                module = importlib.import_module(found.name)
                assert hasattr(module, "__all__"), f"{found.name} re-exports without __all__"
                missing = [name for name in module.__all__ if not hasattr(module, name)]
                assert not missing, f"{found.name}.__all__ names what isn't there: {missing}"


class TestPackaging:
    @pytest.mark.parametrize("package", ["wfcore", "wfapp"])
    def test_types_are_published(self, package: str) -> None:
        assert (ROOT / package / "py.typed").exists()

    def test_the_locked_versions_satisfy_the_promised_ranges(self) -> None:
        locked: dict[str, set[str]] = {}
        for line in (ROOT / "requirements.txt").read_text().splitlines():
            if found := re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line):
                locked.setdefault(normal(found[1]), set()).add(found[2])
        for text in PYPROJECT["project"]["dependencies"]:
            promised = Requirement(text)
            if promised.marker and not promised.marker.evaluate():
                continue
            versions = locked.get(normal(promised.name))
            assert versions, f"requirements.txt doesn't lock {promised.name}: make lock"
            assert all(version in promised.specifier for version in versions), text

    def test_the_lock_holds_what_is_asked_for(self) -> None:
        lock = (ROOT / "requirements.txt").read_text().lower().splitlines()
        for line in (ROOT / "requirements.in").read_text().splitlines():
            wanted = line.partition("#")[0].strip()
            if wanted:
                requirement = Requirement(wanted)
                pin = f"{normal(requirement.name)}{requirement.specifier}"
                assert any(normal(locked.split(" ;")[0]) == normal(pin) for locked in lock), wanted

    def test_this_python_is_one_that_is_promised(self) -> None:
        promised = SpecifierSet(PYPROJECT["project"]["requires-python"])
        assert ".".join(map(str, sys.version_info[:3])) in promised

    def test_private_servers_need_the_standard_library_only(self) -> None:
        answer = python("-S", "-m", "tools.services", "--help")
        assert answer.returncode == 0, answer.stderr


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class TestFiles:
    def test_no_file_speaks_of_the_machine_it_was_written_on(self) -> None:
        # Absolute paths of people's and build machines, and addresses of package mirrors.
        machine = re.compile(r"(?<![\w.~}/-])/(?:root|home|Users|work|farm|tmp/lab|opt/pypi)/")
        found = [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for path in tracked_files()
            for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
            if machine.search(line) and path != Path(__file__)
        ]
        assert not found, "\n".join(found)

    def test_text_ends_in_one_newline_and_lines_in_none_but_that(self) -> None:
        wrong = []
        for path in tracked_files():
            text = text_of(path)
            if (
                path.suffix not in {".py", ".toml", ".md", ".in", ".txt", ".yaml", ".html", ""}
                or not text
            ):
                continue
            if not text.endswith("\n") or text.endswith("\n\n") or "\r" in text:
                wrong.append(f"{path.relative_to(ROOT)}: end of file")
            wrong += [
                f"{path.relative_to(ROOT)}:{number}: blank at the end"
                for number, line in enumerate(text.split("\n"), start=1)
                if line != line.rstrip()
            ]
        assert not wrong, "\n".join(wrong)

    def test_scripts_can_be_run(self) -> None:
        for name in ("manage.py", ".ci/run"):
            assert os.access(ROOT / name, os.X_OK), name


class TestGivenServers:
    def test_servers_of_the_environment_are_used_and_left_alone(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgres://given/database")
        monkeypatch.setenv("REDIS_URL", "redis://given/0")
        (tmp_path / "options.json").write_text('{"durable": true, "sources": ["environment"]}')
        given = Services.attach(tmp_path)
        assert given.environment() == {
            "DATABASE_URL": "postgres://given/database",
            "REDIS_URL": "redis://given/0",
        }
        assert isinstance(given.redis, GivenServer)
        with pytest.raises(RuntimeError, match="REDIS_URL names a server that is not ours"):
            given.redis.empty()


class TestSkips:
    @pytest.mark.parametrize(
        ("in_ci", "marks", "outcome"),
        [("true", [], "failed"), ("", [], "skipped"), ("true", ["unit"], "skipped")],
    )
    def test_a_test_that_skips_itself_fails_in_ci_unless_it_is_a_unit_test(
        self, monkeypatch: pytest.MonkeyPatch, in_ci: str, marks: list[str], outcome: str
    ) -> None:
        monkeypatch.setenv("CI", in_ci)
        item = SimpleNamespace(get_closest_marker=lambda name: name in marks)
        report = SimpleNamespace(skipped=True, outcome="skipped", longrepr="no server")
        hook = conftest.pytest_runtest_makereport(item)
        next(hook)
        with pytest.raises(StopIteration):
            hook.send(report)
        assert report.outcome == outcome
