"""The image and the compose file, checked without an engine."""

import json
import re
import shlex
import sysconfig
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from service.background.service import GRACE_SECONDS
from service.cli import GRACEFUL_SECONDS, app
from service.settings import Settings
from tests.image import HOME, ROOT, install, installing, is_sent, steps, try_out

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("image") == "ironlaw"}
SCHEMA = json.loads((Path(__file__).parent / "data" / "compose-spec" / "compose-spec.json").read_text())
IMAGE = [step for step in steps() if step.stage == 1]


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
        assert (home / packages.removeprefix(f"{HOME}/") / "service" / "cli.py").is_file()
        try_out(home, tmp_path / "data")

    def test_only_what_it_is_built_from_is_sent(self):
        for path in (
            "requirements.txt",
            "pyproject.toml",
            "service/cli.py",
            "migrations/versions/0001_catalog.py",
        ):
            assert is_sent(path)
        for path in (".env", ".git", ".git/config", ".venv", "data", "data/ironlaw.db", "tests", "docs"):
            assert not is_sent(path)
        assert not is_sent("service/kit/__pycache__/web.cpython-311.pyc")

    def test_bases_are_pinned(self):
        bases = [step.rest.split()[0] for step in steps() if step.word == "FROM"]
        assert len(set(bases)) == 1
        assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+", bases[0])

    def test_it_runs_as_nobody_special_and_stops_when_asked(self):
        user, group = map(int, value("USER").split(":"))
        assert min(user, group) >= 10_000
        assert value("STOPSIGNAL") == "SIGTERM"
        assert json.loads(value("ENTRYPOINT")) == ["ironlaw"]
        assert json.loads(value("CMD")) == ["serve"]
        assert environment_of_the_image()["PATH"].startswith(f"{HOME}/bin:")
        assert not any(re.search(r"apt-get|gcc|pip", step.rest) for step in IMAGE if step.word == "RUN")


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
        words = iter(OURS[name].get("command", json.loads(value("CMD"))))
        options = []
        for word in words:
            if word.startswith("--"):
                options.append(word)
            else:
                assert isinstance(command, TyperGroup), word
                assert word in command.commands, word
                command = command.commands[word]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(options) <= known

    @pytest.mark.parametrize("name", OURS)
    def test_ours_can_do_little_and_have_time_to_stop(self, name):
        service = OURS[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108
        assert "user" not in service
        assert "privileged" not in service
        assert seconds(service["stop_grace_period"]) >= GRACEFUL_SECONDS + GRACE_SECONDS + 5

    def test_no_secret_stands_in_it(self):
        """Each comes from the environment and has no default."""
        secret = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
        for service in SERVICES.values():
            for name, given in service["environment"].items():
                if re.search("PASSWORD|SECRET|KEY", name):
                    assert secret.fullmatch(given), name
                assert not re.search(r"://[^/@]*:[^/@]*@", given), name

    def test_the_api_waits_for_schema_and_key(self):
        done = {"condition": "service_completed_successfully"}
        assert SERVICES["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert SERVICES["first-key"]["depends_on"] == {"migrate": done}
        assert SERVICES["api"]["depends_on"] == {"migrate": done, "first-key": done}
        assert SERVICES["database"]["healthcheck"]
        assert "ports" not in SERVICES["database"]
        assert SERVICES["worker"]["profiles"] == ["worker"]

    def test_the_api_is_reached_from_this_host_alone(self):
        assert SERVICES["api"]["ports"] == ["127.0.0.1:8000:8000"]
        assert environment_of_the_image()["IRONLAW_PORT"] == "8000"
        assert "8000/readyz" in SERVICES["api"]["healthcheck"]["test"][-1]
