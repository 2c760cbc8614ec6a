"""The documented commands where a machine has no network: carried wheels, and no PYTHONPATH."""

import json
import os
import platform
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution

import pytest

from bench import gpu_kit
from tests.worker.base import BASE, ROOT, link_base
from tests.worker.cuda import host_kernels
from tests.worker.records import suite

CARRIED = (
    "annotated-types",
    "nvidia-ml-py",
    "pydantic",
    "pydantic-core",
    "typing-extensions",
    "typing-inspection",
)
"""What the kit holds and this environment has. Of nvmath-python, which needs CUDA, there are names alone."""
PINS = (ROOT / "requirements-gpu-kit.txt").read_text()
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
NO_DEVICE = 100


def pack(name, kit):
    """A wheel of what is installed."""
    found = distribution(name)
    tag = re.search(r"(?m)^Tag: (\S+)", found.read_text("WHEEL"))[1]
    file = kit / f"{found.name.replace('-', '_')}-{found.version}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path in found.files:
            if path.parts[0] != ".." and path.suffix != ".pyc":
                wheel.write(path.locate(), str(path))


def interpreter(folder):
    """Python with an empty folder of packages, and that folder."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    return folder / "bin" / "python", packages


def said(command, **variables):
    """What a command of the checkout answers where nothing but the path and a home is set."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A GPU machine as PyTorch leaves it, NumPy and the driver's bindings alone, and the wheels beside it."""
    folder = tmp_path_factory.mktemp("machine")
    python, packages = interpreter(folder / "python")
    link_base(packages, ("numpy", "cuda-bindings"), ())
    kit = folder / "kit"
    kit.mkdir()
    for name in CARRIED:
        pack(name, kit)
    with zipfile.ZipFile(kit / "nvmath_python-1.0.0-py3-none-any.whl", "w") as wheel:
        for module in ("nvmath/__init__", "nvmath/bindings/__init__", "nvmath/bindings/cublasLt"):
            wheel.writestr(f"{module}.py", "")
    return python, kit


@pytest.fixture(scope="module")
def no_device(tmp_path_factory):
    """The environment of a driver without a device."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "libcuda.so.1").symlink_to(host_kernels.built_driver())
    return {"LD_LIBRARY_PATH": str(folder), "FAKE_DRIVER_INIT": str(NO_DEVICE)}


@pytest.mark.parametrize("target", ["gpu-suite", "gpu-first-contact", "gpu-power"])
def test_a_command_ends_at_the_driver_alone(machine, no_device, tmp_path, target):
    python, kit = machine
    done = said(["make", target, f"PYTHON={python}", f"KIT={kit}", f"OUT={tmp_path / 'out'}"], **no_device)
    first, *rest = done.stderr.splitlines()
    assert first == f"{target}: no NVIDIA GPU: CUDA driver: CUDA_ERROR_NO_DEVICE"
    assert all(line.startswith("make: ***") for line in rest)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_without_wheels_it_names_what_they_would_bring(machine, tmp_path):
    done = said([machine[0], "-m", "bench.gpu_suite", "--kit", tmp_path])
    lacking = re.search(r"lacks (.*):", done.stderr)[1].split(", ")
    assert lacking == ["pydantic", "nvidia-ml-py", "nvmath-python"]
    assert set(lacking) <= set(re.findall(r"(?m)^([\w-]+)==", PINS))


def test_a_worker_measures_from_a_checkout(tmp_path):
    """Its processes start where the package is imported from, wherever that is."""
    python, packages = interpreter(tmp_path / "python")
    link_base(packages, BASE, ())
    (tmp_path / "suite.json").write_text(suite(benchmarks=1, repeats=1).model_dump_json())
    main = "from service.cli.main import main; main()"
    words = ["worker", "measure", "--suite", tmp_path / "suite.json", "--out", tmp_path / "out"]
    done = said([python, "-c", main, *words], IRONLAW_WORKER_LOCK_FILE=str(tmp_path / "lock"))
    assert "No module named" not in done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {repeat["status"] for one in summary["benchmarks"] for repeat in one["repeats"]} == {"ok"}


def test_a_processor_group_measures_from_a_checkout(machine):
    """So does the ring of a collective operation, one process for each place."""
    python, kit = machine
    code = (
        "import sys; from pathlib import Path; from bench import gpu_kit; gpu_kit.use(Path(sys.argv[1]));"
        "from service.protocol.suites import shipped_suites; from service.worker.cpu import collective;"
        "one = next(b for b in shipped_suites()['cpu-standard'].benchmarks if b.work.kind == 'collective');"
        "work = one.work.model_copy(update={'payload_bytes': 4096, 'devices': 2});"
        "one = one.model_copy(update={'work': work});"
        "prepared = collective.prepare(one, 1, None);"
        "timed = prepared.__enter__(); print(timed.execute(2) > 0, timed.check().passed)"
    )
    assert said([python, "-c", code, kit]).stdout == "True True\n"


def test_a_variable_of_the_environment_is_no_answer_to_make():
    shown = said(
        ["make", "-n", "gpu-suite", "devices"], OUT="leaked", ONLY="leaked", SUITE="leaked", KIT="leaked"
    )
    assert "leaked" not in shown.stdout
    asked = said(["make", "-n", "gpu-suite", "devices", "OUT=asked", "PART=2"])
    assert asked.stdout.count('--out "asked"') == 2
    assert "timeout --foreground --kill-after=15 570 " in asked.stdout
    assert "--kill-after=15 7200 " in shown.stdout


def test_wheels_that_fit_are_unpacked_once(tmp_path, monkeypatch):
    names = {
        f"one-1-{TAG}-{TAG}-manylinux_2_28_{platform.machine()}": True,
        "two-1-py2.py3-none-any": True,
        f"three-1-{TAG}-{TAG}-manylinux_2_28_other": False,
        f"four-1-cp39-cp39-manylinux_2_28_{platform.machine()}": False,
    }
    for name in names:
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            wheel.writestr(f"{name[:3]}.py", "")
    site = gpu_kit.unpack(tmp_path)
    assert {path.name for path in site.iterdir()} == {
        f"{name[:3]}.py" for name, fits in names.items() if fits
    }
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("it was there already"))
    assert gpu_kit.unpack(tmp_path) == site
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [site.name]
    assert gpu_kit.unpack(tmp_path / "nothing") is None


def test_the_kit_is_pinned_with_hashes_as_the_worker_is():
    pinned = dict(re.findall(r"(?m)^([\w-]+)==(\S+)", PINS))
    worker = dict(re.findall(r"(?m)^([\w-]+)==(\S+)", (ROOT / "requirements-worker.txt").read_text()))
    assert {*CARRIED, "cuda-core", "nvidia-cudnn-frontend", "nvmath-python"} <= pinned.keys()
    assert {name: pinned[name] for name in pinned.keys() & worker} == {
        name: worker[name] for name in pinned.keys() & worker
    }
    assert PINS.count("--hash=sha256:") >= len(pinned)
    makefile = (ROOT / "Makefile").read_text()
    assert (
        set(re.findall(r"[\w-]+", re.search(r"printf '%s\\n' (annotated[^|]+)", makefile)[1]))
        >= pinned.keys()
    )
