"""The examples of how the service and a worker are deployed, held against what reads them."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from service.app.background.service import GRACE_SECONDS
from service.app.settings import Settings
from service.cli.main import app
from service.worker.cli import app as worker_app
from tests.image import ROOT, is_sent, steps
from tests.serving import IRONLAW

DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "ironlaw-worker.service").read_text()
SERVER = DEPLOY / "ironlaw.service"
BATCH = DEPLOY / "ironlaw-worker.sbatch"
DAEMON_SET = yaml.safe_load((DEPLOY / "ironlaw-worker.yaml").read_text())
POD = DAEMON_SET["spec"]["template"]["spec"]
CONTAINERS = [*POD["initContainers"], *POD["containers"]]
OURS = [container for container in CONTAINERS if "args" in container]
SCHEMA = json.loads((ROOT / "tests" / "data" / "kubernetes" / "daemonset-apps-v1.json").read_text())
COMMANDS = get_command(worker_app).commands
SETTINGS = {str(p.envvar) for command in COMMANDS.values() for p in command.params if p.envvar}
# Of those in the manual page of sbatch, Slurm 25.05.
SBATCH_OPTIONS = """
account array begin chdir comment constraint cpus-per-gpu cpus-per-task deadline dependency error
exclude exclusive export gpus gpus-per-node gpus-per-task gres hint hold input job-name licenses
mail-type mail-user mem mem-per-cpu mem-per-gpu nice no-requeue nodelist nodes ntasks
ntasks-per-node open-mode output partition qos requeue reservation signal switches threads-per-core
time time-min wait wckey
"""


def options_of(words):
    """The command that words give, and its options; every word must be known."""
    command, options = get_command(app), []
    for word in words:
        if options or word.startswith("--"):
            options.append(word)
        else:
            assert isinstance(command, TyperGroup), word
            command = command.commands[word]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in options if word.startswith("--")} <= known
    return command.name, options


def named(text):
    """Settings of the worker that a text names."""
    return set(re.findall(r"IRONLAW_WORKER_[A-Z_]+", text))


HAS_SYSTEMD = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze checks the unit: apt install systemd"
)


def analyse(*words):
    """What systemd-analyze says."""
    command = [shutil.which("systemd-analyze"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class TestServer:
    """The unit of the service."""

    @HAS_SYSTEMD
    @pytest.mark.parametrize("is_right", [True, False])
    def test_it_is_read_without_a_word(self, tmp_path, is_right):
        unit, command = tmp_path / SERVER.name, tmp_path / "ironlaw"
        command.symlink_to(IRONLAW)
        text = SERVER.read_text().replace("/opt/ironlaw/bin/ironlaw", str(command))
        unit.write_text(text if is_right else text.replace("PrivateTmp=", "PrivateTemp="))
        done = analyse("verify", unit)
        assert done.returncode == 0, done.stderr
        assert ("PrivateTemp" in done.stderr) != is_right
        assert ("ironlaw.service" in done.stderr) != is_right, done.stderr

    @HAS_SYSTEMD
    def test_its_exposure_is_low(self):
        """By the measure of systemd, of which ten is a service without a sandbox."""
        said = analyse("security", "--offline=true", "--no-pager", SERVER).stdout
        assert float(re.search(r"exposure level for ironlaw.service: ([0-9.]+)", said)[1]) <= 1.5

    def test_its_command_is_one_of_the_service(self):
        (command,) = re.findall(r"(?m)^ExecStart=/opt/ironlaw/bin/ironlaw (.*)$", SERVER.read_text())
        assert options_of(command.split()) == ("serve", [])
        known = {f"IRONLAW_{name.upper()}" for name in Settings.model_fields}
        assert set(re.findall("IRONLAW_[A-Z_]+", SERVER.read_text())) <= known

    def test_it_has_time_to_end(self):
        (stop,) = re.findall(r"(?m)^TimeoutStopSec=(\d+)$", SERVER.read_text())
        assert float(stop) >= GRACE_SECONDS + 5


class TestSystemd:
    @HAS_SYSTEMD
    @pytest.mark.parametrize("is_right", [True, False])
    def test_it_reads_the_unit_without_a_word(self, tmp_path, is_right):
        unit = tmp_path / "ironlaw-worker.service"
        command = tmp_path / "ironlaw"  # the checkout may stand where names have spaces
        command.symlink_to(IRONLAW)
        text = UNIT.replace("/opt/ironlaw/bin/ironlaw worker", f"{command} worker")
        unit.write_text(text if is_right else text.replace("RestartSec=", "RestartSecs="))
        done = analyse("verify", unit)
        assert done.returncode == 0, done.stderr
        assert ("ironlaw-worker" in done.stderr) != is_right, done.stderr

    def test_it_can_do_little_and_not_take_the_host(self):
        """Nor does it lock away the accelerators: what makes devices private, or lists some, does."""
        said = dict(re.findall(r"(?m)^(\w+)=(.*)$", UNIT.partition("[Service]")[2]))
        assert said["CapabilityBoundingSet"] == ""
        assert said["NoNewPrivileges"] == "yes"
        assert {"MemoryMax", "TasksMax", "ProtectSystem", "ProtectHome", "RestrictNamespaces"} <= said.keys()
        assert not {"PrivateDevices", "ProtectClock", "DeviceAllow", "CPUQuota"} & said.keys()

    def test_its_command_is_one_of_the_worker(self):
        (command,) = re.findall(r"(?m)^ExecStart=/opt/ironlaw/bin/ironlaw (.*)$", UNIT)
        name, options = options_of(command.split())
        assert name == "run"
        assert named(UNIT) <= SETTINGS
        grace = float(options[options.index("--grace-seconds") + 1])
        (stop,) = re.findall(r"(?m)^TimeoutStopSec=(\d+)$", UNIT)
        assert grace + 5 <= float(stop)


class TestSlurm:
    """The script with a stand-in for srun and for the worker."""

    @pytest.fixture
    def node(self, tmp_path):
        """Files that say what ran, and the environment of a job."""
        stands = tmp_path / "bin"
        stands.mkdir()
        script = (
            'echo "$*" >>"$TOLD"; case "$*" in *" run "*) '
            'trap "echo asked to stop >>\\"$TOLD\\"; exit 0" TERM; '
            'n=0; while [ "$n" -lt "$TENTHS" ]; do sleep 0.1; n=$((n + 1)); done;; esac'
        )
        for name, text in {"srun": 'shift; exec "$@"', "ironlaw": script}.items():
            stand = stands / name
            stand.write_text(f"#!/bin/sh\n{text}\n")
            stand.chmod(0o755)
        key = tmp_path / "key"
        key.touch()
        return {
            "PATH": f"{stands}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "TOLD": str(tmp_path / "told"),
            "TENTHS": "1",
            "IRONLAW_COMMAND": str(stands / "ironlaw"),
            "IRONLAW_WORKER_SERVICE": "https://ironlaw.example.com",
            "IRONLAW_KEY_FILE": str(key),
            "SLURMD_NODENAME": "gpu-017",
        }

    def told(self, node):
        path = Path(node["TOLD"])
        return path.read_text().splitlines() if path.exists() else []

    def test_it_enrols_the_node_once_and_runs_one_suite(self, node):
        subprocess.run(["/bin/bash", BATCH], env=node, check=True, timeout=60)
        enrol, run = self.told(node)
        assert options_of(enrol.split())[0] == "enrol"
        assert options_of(run.split())[0] == "run"
        assert "--name gpu-017" in enrol
        assert "--once" in run
        assert (Path(node["HOME"]) / ".ironlaw-worker").stat().st_mode & 0o077 == 0

    def test_asked_to_stop_it_asks_the_worker_and_waits_for_it(self, node):
        job = subprocess.Popen(["/bin/bash", BATCH], env={**node, "TENTHS": "100"})
        deadline = time.monotonic() + 60
        while len(self.told(node)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.2)
        job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=60) == 0
        assert self.told(node)[-1] == "asked to stop"

    @pytest.mark.parametrize("missing", ["IRONLAW_WORKER_SERVICE", "IRONLAW_KEY_FILE"])
    def test_what_is_missing_is_named(self, node, missing):
        del node[missing]
        done = subprocess.run(["/bin/bash", BATCH], env=node, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert missing in done.stderr
        assert self.told(node) == []

    def test_its_directives_are_those_of_sbatch(self):
        given = dict(re.findall(r"(?m)^#SBATCH --([a-z-]+)(?:=(\S+))?$", BATCH.read_text()))
        assert len(given) == BATCH.read_text().count("#SBATCH")
        assert given.keys() <= set(SBATCH_OPTIONS.split())
        seconds_before = int(given["signal"].removeprefix("B:TERM@"))
        (grace,) = re.findall(r"--grace-seconds (\d+)", BATCH.read_text())
        assert int(grace) + 5 <= seconds_before
        assert named(BATCH.read_text()) - {"IRONLAW_WORKER_ROOT"} <= SETTINGS


class TestKubernetes:
    def test_it_fits_the_published_schema(self):
        validator = jsonschema_rs.validator_for(SCHEMA)
        validator.validate(DAEMON_SET)
        pod = {**POD, "terminationGracePeriodSecond": 45}
        template = {**DAEMON_SET["spec"]["template"], "spec": pod}
        assert not validator.is_valid({**DAEMON_SET, "spec": {**DAEMON_SET["spec"], "template": template}})

    def test_what_it_mounts_is_there(self):
        volumes = {volume["name"] for volume in POD["volumes"]}
        mounted = {mount["name"] for container in CONTAINERS for mount in container["volumeMounts"]}
        assert mounted == volumes
        labels = DAEMON_SET["spec"]["template"]["metadata"]["labels"]
        assert DAEMON_SET["spec"]["selector"]["matchLabels"].items() <= labels.items()

    @pytest.mark.parametrize("container", OURS, ids=lambda container: container["name"])
    def test_every_command_and_setting_is_one_of_the_worker(self, container):
        options_of(container["args"])
        settings = {variable["name"] for variable in container["env"]}
        assert {name for name in settings if name.startswith("IRONLAW_")} <= SETTINGS

    @pytest.mark.parametrize("container", OURS, ids=lambda container: container["name"])
    def test_ours_can_do_little(self, container):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert POD["securityContext"]["runAsNonRoot"] is True
        assert not any(POD.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))

    @pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: container["name"])
    def test_none_takes_the_memory_of_its_node_or_writes_where_it_should_not(self, container):
        assert container["resources"]["limits"]["memory"]
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
        scratch = [volume["emptyDir"] for volume in POD["volumes"] if "emptyDir" in volume]
        assert all(each["sizeLimit"] for each in scratch)

    def test_it_has_time_to_give_its_lease_back(self):
        (worker,) = POD["containers"]
        grace = float(worker["args"][worker["args"].index("--grace-seconds") + 1])
        assert grace + 10 <= POD["terminationGracePeriodSeconds"]


class TestImage:
    """Its steps are those of the service's image, which tests run, but for what it installs and runs."""

    def test_it_is_built_as_the_image_of_the_service(self):
        def installing(name, requirements):
            return [
                step._replace(rest=step.rest.replace(requirements, "REQUIREMENTS"))
                for step in steps(name)
                if step.stage == 0
            ]

        ours = installing("deploy/worker.Dockerfile", "requirements-worker.txt")
        assert ours == installing("Dockerfile", "requirements.txt")
        assert is_sent("requirements-worker.txt")

    def test_what_it_installs_is_the_package_with_cuda_and_pinned_as_elsewhere(self):
        def pinned(name):
            found = re.findall(r"(?m)^([a-z0-9-]+)==(\S+)(.*)\\$", (ROOT / name).read_text())
            return {(package, version) for package, version, _ in found}

        ours, of_tests = pinned("requirements-worker.txt"), pinned("requirements-dev.txt")
        names = {package for package, _ in ours}
        assert {"httpx", "numpy", "pydantic", "nvmath-python", "nvidia-cublas", "nvidia-ml-py"} <= names
        assert not names & {"fastapi", "sqlalchemy", "uvicorn", "torch", "pyarrow"}
        assert {package for package, _ in ours & of_tests} == names & {package for package, _ in of_tests}
        text = (ROOT / "requirements-worker.txt").read_text()
        assert text.count("--hash=sha256:") > len(names)

    def test_it_runs_the_worker_as_nobody_special(self):
        last = {step.word: step.rest for step in steps("deploy/worker.Dockerfile") if step.stage == 1}
        words = json.loads(last["ENTRYPOINT"])[1:] + json.loads(last["CMD"])
        assert options_of(words) == ("run", [])
        user, group = map(int, last["USER"].split(":"))
        assert (POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"]) == (user, group)
        assert named(last["ENV"]) <= SETTINGS
