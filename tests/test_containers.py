"""The image and the compose file, checked without an engine."""

import json
import os
import re
import shlex
import stat
import subprocess
import sysconfig
import time
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from service.app.background.service import GRACE_SECONDS
from service.app.settings import Settings
from service.cli.main import GRACEFUL_SECONDS, app
from tests.composing import COMPOSE, OURS, SERVICES, environment_of, make_secrets, resolved
from tests.image import HOME, ROOT, install, installing, is_sent, steps, try_out

SCHEMA = json.loads((Path(__file__).parent / "data" / "compose-spec" / "compose-spec.json").read_text())
IMAGE = [step for step in steps() if step.stage == 2]


def value(word):
    """What the image's last stage says by an instruction that stands there once."""
    (step,) = (step for step in IMAGE if step.word == word)
    return step.rest


def environment_of_the_image():
    settings = " ".join(step.rest for step in IMAGE if step.word == "ENV")
    return dict(item.split("=", 1) for item in shlex.split(settings))


def seconds(duration):
    assert re.fullmatch(r"\d+s", duration)
    return int(duration[:-1])


class TestImage:
    @pytest.mark.enable_socket
    @pytest.mark.allow_hosts(["127.0.0.1"])
    def test_the_steps_install_a_service_that_answers(self, tmp_path, monkeypatch):
        """On the requirements of this test run; `make containers` installs those of the image."""
        stand_in = tmp_path / "requirements"
        stand_in.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if "ironlaw" not in path.name:
                (stand_in / path.name).symlink_to(path)
        commands = installing()
        (pinned,) = (command for command in commands if "--requirement requirements.txt" in command)
        assert "--require-hashes" in pinned
        (tidying,) = (command for command in commands if " uninstall " in command)
        packages = f"{HOME}/lib/python{sysconfig.get_python_version()}/site-packages"
        commands[commands.index(pinned)] = f"echo '{stand_in}' >{packages}/requirements.pth"
        commands.remove(tidying)
        monkeypatch.setenv("PIP_QUIET", "1")
        home = install(tmp_path / "an image", commands)
        assert (home / packages.removeprefix(f"{HOME}/") / "service" / "cli" / "main.py").is_file()
        try_out(home, tmp_path / "data")

    def test_only_what_it_is_built_from_is_sent(self):
        for path in (
            "requirements.txt",
            "pyproject.toml",
            "service/cli/main.py",
            "migrations/versions/0001_catalog.py",
            "requirements-site.txt",
            "tools/site/build",
            "docs/guides/plans.md",
        ):
            assert is_sent(path)
        for path in (
            ".env",
            ".git",
            ".git/config",
            ".venv",
            "data",
            "data/ironlaw.db",
            "tests",
            "tools/setup",
        ):
            assert not is_sent(path)
        assert not is_sent("service/kit/__pycache__/web.cpython-311.pyc")

    def test_bases_are_pinned(self):
        bases = [step.rest.split()[0] for step in steps() if step.word == "FROM"]
        assert len(set(bases)) == 1
        assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", bases[0])

    def test_it_runs_as_nobody_special_and_stops_when_asked(self):
        user, group = map(int, value("USER").split(":"))
        assert min(user, group) >= 10_000
        assert value("STOPSIGNAL") == "SIGTERM"
        assert json.loads(value("ENTRYPOINT")) == ["ironlaw"]
        assert json.loads(value("CMD")) == ["serve"]
        assert environment_of_the_image()["PATH"].startswith(f"{HOME}/bin:")
        assert not any(re.search(r"apt-get|gcc|pip", step.rest) for step in IMAGE if step.word == "RUN")


class TestSecrets:
    """Those that the compose file mounts."""

    def test_they_are_made_once_behind_a_folder_of_their_owner(self, tmp_path):
        folder = make_secrets(tmp_path / "the secrets")
        texts = {path.name: path.read_text() for path in folder.iterdir()}
        mounted = {secret["file"].rpartition("/")[2] for secret in COMPOSE["secrets"].values()}
        assert texts.keys() == mounted == COMPOSE["secrets"].keys()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o444}
        made = [
            text.strip() for name, text in texts.items() if name not in {"oidc-client-secret", "metrics-key"}
        ]
        assert all(re.fullmatch("[0-9a-f]{64}", text) for text in made)
        assert len(set(made)) == len(made)
        make_secrets(folder)
        assert {path.name: path.read_text() for path in folder.iterdir()} == texts

    def test_the_secret_of_an_older_deployment_is_taken_over(self, tmp_path):
        folder = make_secrets(tmp_path / "secrets", IRONLAW_SECRET_KEY="k" * 40)
        assert (folder / "secret-key").read_text() == f"{'k' * 40}\n"


class TestCompose:
    def test_it_fits_the_published_schema(self):
        validator = jsonschema_rs.validator_for(SCHEMA)
        validator.validate(COMPOSE)
        wrong = {**COMPOSE, "services": {**SERVICES, "api": {**SERVICES["api"], "read_onli": True}}}
        assert not validator.is_valid(wrong)

    def test_every_setting_is_one_of_the_service(self):
        named = set(environment_of_the_image())
        for service in OURS.values():
            named |= service["environment"].keys()
        known = {f"IRONLAW_{name.upper()}" for name in Settings.model_fields}
        assert {name for name in named if name.startswith("IRONLAW_")} - known == set()

    @pytest.mark.parametrize("name", OURS)
    def test_every_command_is_one_of_the_service(self, name):
        command = get_command(app)
        words = [resolved(word, {}) for word in OURS[name].get("command", json.loads(value("CMD")))]
        while isinstance(command, TyperGroup):
            command = command.commands[words.pop(0)]
        assert command.make_context(name, words).command is command  # every option is known

    def test_every_setting_of_an_operator_reaches_the_service(self):
        """The secret is a file; what the image says stays."""
        known = {f"IRONLAW_{name.upper()}" for name in Settings.model_fields} - {"IRONLAW_SECRET_KEY"}
        set_by_the_image = set(environment_of_the_image())
        for name in ("api", "worker"):
            passed = {each for each in SERVICES[name]["environment"] if each.startswith("IRONLAW_")}
            assert passed - set_by_the_image == known - set_by_the_image

    def test_settings_are_passed_on_as_they_are_given(self):
        given = {
            "IRONLAW_PUBLIC_URL": "https://plan.example.com",
            "IRONLAW_ALLOWED_HOSTS": "plan.example.com",
            "IRONLAW_WEBHOOK_NETWORKS": "10.0.0.0/8",
            "IRONLAW_OIDC_ISSUER": "https://login.example.com",
            "IRONLAW_OIDC_AUDIENCE": "ironlaw",
            "IRONLAW_OIDC_CLIENT_ID": "ironlaw",
        }
        bare, filled = environment_of("api", {}), environment_of("api", given)
        # Prometheus asks for the service by its name here.
        assert filled.items() >= (given | {"IRONLAW_ALLOWED_HOSTS": "plan.example.com,api"}).items()
        assert "/run/secrets/oidc-client-secret" == filled["IRONLAW_OIDC_CLIENT_SECRET_FILE"]  # noqa: SIM300
        assert bare.keys() == {
            "IRONLAW_MODE",
            "IRONLAW_DATABASE_URL",
            "IRONLAW_DATABASE_PASSWORD_FILE",
            "IRONLAW_SECRET_KEY_FILE",
            "IRONLAW_ALLOWED_HOSTS",
            "IRONLAW_AUDIT_HEADS_FILE",
            "IRONLAW_OIDC_CLIENT_SECRET_FILE",
        }
        assert bare["IRONLAW_OIDC_CLIENT_SECRET_FILE"] == ""

    @pytest.mark.parametrize("name", SERVICES)
    def test_each_can_do_little_and_not_take_the_host(self, name):
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert all(re.fullmatch(r"/[a-z/]+:size=\d+m", each) for each in service["tmpfs"])
        forbidden = {"cap_add", "privileged", "pid", "ipc", "network_mode", "devices", "env_file"}
        assert not forbidden & service.keys()
        assert service.get("user") == ("postgres" if name == "database" else None)
        limits = service["deploy"]["resources"]["limits"]
        assert float(limits["cpus"]) > 0
        assert re.fullmatch(r"\d+G", limits["memory"])
        assert limits["pids"] <= 256

    @pytest.mark.parametrize("name", OURS)
    def test_ours_have_time_to_stop(self, name):
        assert seconds(OURS[name]["stop_grace_period"]) >= GRACEFUL_SECONDS + GRACE_SECONDS + 5

    def test_no_secret_stands_in_it(self):
        """Each is a file that the services mount which read it, and no others."""
        for name, service in SERVICES.items():
            read = set()
            for variable, value_ in environment_of(name, {"IRONLAW_OIDC_CLIENT_ID": "ironlaw"}).items():
                if re.search("PASSWORD|SECRET|KEY", variable):
                    assert variable.endswith("_FILE"), variable
                    read.add(value_.removeprefix("/run/secrets/"))
                assert not re.search(r"://[^/@]*:[^/@]*@", value_), variable
            if name == "database":  # whose roles are made with them
                read |= {"database-owner-password", "database-password", "database-reader-password"}
            for volume in service.get("volumes", []):  # files of settings may name more
                path = ROOT / volume.partition(":")[0]
                if path.is_file() and path.suffix == ".yml":
                    read |= set(re.findall(r"/run/secrets/([a-z-]+)", path.read_text()))
            assert read == set(service["secrets"])

    def test_only_what_migrates_owns_the_schema(self):
        owners = {name for name in OURS if "database-owner-password" in SERVICES[name]["secrets"]}
        assert owners == {"migrate"}
        assert [n for n in SERVICES if "database-superuser-password" in SERVICES[n]["secrets"]] == [
            "database"
        ]
        assert "secret-key" not in SERVICES["backup"]["secrets"]

    def test_the_first_key_goes_to_a_volume_and_not_to_the_log(self):
        service = SERVICES["first-key"]
        file = service["command"][service["command"].index("--to") + 1]
        (volume,) = service["volumes"]
        assert volume == f"operator:{file.rpartition('/')[0]}"
        assert [name for name, each in SERVICES.items() if volume in each.get("volumes", [])] == ["first-key"]
        folders = [step.rest for step in IMAGE if step.word == "RUN"]
        assert any("--owner ironlaw --group ironlaw --mode 0700 /data" in folder for folder in folders)

    @pytest.mark.parametrize(("age_hours", "is_well"), [(None, False), (0, True), (47, True), (49, False)])
    def test_a_backup_that_is_missing_is_seen(self, tmp_path, age_hours, is_well):
        if age_hours is not None:
            file = tmp_path / "ironlaw-20261124T000000Z.backup"
            file.touch()
            written = time.time() - 3600 * age_hours
            os.utime(file, (written, written))
        kind, command = SERVICES["backup"]["healthcheck"]["test"]
        assert kind == "CMD-SHELL"
        here = resolved(command, {}).replace("/data", shlex.quote(str(tmp_path)))
        assert (subprocess.run(["/bin/sh", "-c", here], check=False).returncode == 0) == is_well

    def test_the_api_waits_for_schema_and_key(self):
        done = {"condition": "service_completed_successfully"}
        assert SERVICES["backup"]["depends_on"] == {"migrate": done}
        assert SERVICES["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert SERVICES["first-key"]["depends_on"] == {"migrate": done}
        assert SERVICES["api"]["depends_on"] == {"migrate": done, "first-key": done}
        assert SERVICES["database"]["healthcheck"]
        assert "ports" not in SERVICES["database"]
        assert SERVICES["worker"]["profiles"] == ["worker"]

    def test_the_api_is_reached_from_this_host_alone(self):
        for service in SERVICES.values():
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert SERVICES["api"]["ports"] == ["127.0.0.1:8000:8000"]
        assert environment_of_the_image()["IRONLAW_PORT"] == "8000"
        assert "8000/readyz" in SERVICES["api"]["healthcheck"]["test"][-1]

    def test_what_watches_is_asked_for_and_finds_its_files(self):
        watching = [name for name, each in SERVICES.items() if each.get("profiles") == ["observability"]]
        assert watching == ["prometheus", "grafana"]
        for name in watching:
            mounted = [volume.split(":") for volume in SERVICES[name]["volumes"]]
            for source, _, *options in mounted:
                is_here = source.startswith("./")
                assert options == (["ro"] if is_here else [])
                assert (ROOT / source).exists() if is_here else source in COMPOSE["volumes"]
        read = yaml.safe_load((ROOT / "deploy" / "compose" / "prometheus.yml").read_text())
        (scrape,) = read["scrape_configs"]
        ((address,),) = (each["targets"] for each in scrape["static_configs"])
        host, _, port = address.partition(":")
        assert (host in SERVICES, port) == (True, environment_of_the_image()["IRONLAW_PORT"])
        assert host in environment_of("api", {})["IRONLAW_ALLOWED_HOSTS"].split(",")
        assert "/etc/prometheus/" + read["rule_files"][0] in str(SERVICES["prometheus"]["volumes"])

    def test_grafana_has_the_sources_of_its_dashboards(self):
        def sources(path):
            found = yaml.safe_load((ROOT / "deploy" / path).read_text())["datasources"]
            return {each["uid"]: each for each in found}

        own = sources("compose/grafana-datasources.yml")
        elsewhere = sources("observability/grafana/provisioning/datasources/ironlaw.yml")
        assert {(uid, each["type"]) for uid, each in own.items()} == {
            (uid, each["type"]) for uid, each in elsewhere.items()
        }
        assert own["ironlaw-prometheus"]["url"].partition("//")[2].partition(":")[0] in SERVICES
        assert own["ironlaw-postgresql"]["url"].partition(":")[0] in SERVICES
