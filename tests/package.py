"""The wheel as a stranger gets it: built, installed into an empty environment outside of the checkout, tried.

`make package` does all of it, and needs a network for the dependencies. Tests hold what is in the files.
"""

import html
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

from service import __version__
from service.app.examples import REFERENCE_QUESTION
from tests import serving
from tests.image import ROOT
from tests.test_pull_request import MARKER, answering_forge, git, steps, variables_of_job

WHEEL, SDIST = f"ironlaw-{__version__}-py3-none-any.whl", f"ironlaw-{__version__}.tar.gz"
RENT = "1415571.28"
"""US dollars, as the README says."""
ASSET = re.compile(r"(?:src|href)=[\"'](/[^\"'#]+)")


def build(folder, source=ROOT):
    """Build wheel and source distribution of ``source``, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", folder]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return folder


def files_of_wheel(folder):
    """What the wheel installs, apart from what describes it."""
    with zipfile.ZipFile(folder / WHEEL) as wheel:
        return {name for name in wheel.namelist() if ".dist-info/" not in name}


def metadata_of_wheel(folder):
    """The metadata of the wheel, and the licence files in it."""
    about = f"ironlaw-{__version__}.dist-info"
    with zipfile.ZipFile(folder / WHEEL) as wheel:
        metadata = message_from_bytes(wheel.read(f"{about}/METADATA"))
        return metadata, {
            name: wheel.read(f"{about}/licenses/{name}") for name in metadata.get_all("License-File")
        }


def unpack_sdist(folder, place):
    """The folder of the unpacked source distribution."""
    with tarfile.open(folder / SDIST) as archive:
        archive.extractall(place, filter="data")
    return place / SDIST.removesuffix(".tar.gz")


def install(folder, wheel):
    """An environment with the server from ``wheel`` and the newest dependencies that it allows."""
    home = folder / "home"
    venv.create(home, with_pip=True)
    command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", f"{wheel}[server]"]
    subprocess.run(command, cwd=folder, env=strange_environment(folder), check=True)
    return home


def strange_environment(folder):
    """Variables of somebody who has no checkout."""
    own = serving.environment(folder / "data", IRONLAW_PORT="0")
    own.pop("PYTHONPATH", None)
    return own


def try_out(home, folder):
    """The installed service has its version, catalog and pages, and answers the reference question."""
    ironlaw, where = home / "bin" / "ironlaw", {"cwd": folder, "env": strange_environment(folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    said = subprocess.run([ironlaw, "--version"], **where, **pipes, check=True).stdout
    assert said.startswith(f"ironlaw {__version__}, method "), said
    with serving.served(subprocess.Popen([ironlaw, "serve"], **where, **pipes)) as server:
        answer = server.client.post("/v1/estimates/utility-bill", json=REFERENCE_QUESTION).json()
        assert answer["rent"]["total"]["amount"] == RENT, answer
        assert server.client.get("/openapi.json").json()["info"]["version"] == __version__
        for name in ("models", "accelerators", "offers", "tariffs", "grids"):
            assert server.client.get(f"/v1/{name}").json()["items"], name
        read_pages(server.client)
    examined = subprocess.run([ironlaw, "doctor", "--json"], **where, **pipes, check=True).stdout
    return len(json.loads(examined)["checks"])


def read_pages(client):
    """Pages for people, with all that they load from here."""
    for path in ("/", "/docs", "/ask", "/quotes", "/budgets"):
        page = client.get(path)
        assert page.status_code == 200, path
        for asset in sorted({html.unescape(link) for link in ASSET.findall(page.text)}):
            assert client.get(asset).status_code < 400, asset


def comment_on_change(home, folder):
    """The steps of the workflow for pull requests, by what is installed, over twice the accelerators."""
    repository, work = folder / "repository", folder / "work"
    (repository / "capacity").mkdir(parents=True)
    work.mkdir()
    git(repository, "init", "--quiet")
    for count in (500, 1000):
        question = {
            **REFERENCE_QUESTION,
            "cluster": {**REFERENCE_QUESTION["cluster"], "accelerator_count": count},
        }
        (repository / "capacity" / "training.json").write_text(json.dumps(question))
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"{count} accelerators")
    with answering_forge("github") as forge:
        own = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "LIMIT": "10%", "GITHUB_WORKSPACE": str(repository)}
        own |= {"BASE": git(repository, "rev-parse", "HEAD~1"), **variables_of_job(forge, folder)}
        for command, _ in steps("github"):
            subprocess.run(["/bin/bash", "-e", "-c", command], cwd=work, env=own, check=True)
    (body,) = (comment["body"] for comment in forge.comments)
    assert body.startswith(MARKER)
    assert "training.json" in body, body


def main():
    """Build, install and try; with a folder, keep wheel and source distribution there."""
    with tempfile.TemporaryDirectory(prefix="ironlaw package ") as temporary:
        folder = Path(temporary)
        kept = build(Path(sys.argv[1]).resolve() if sys.argv[1:] else folder / "dist")
        again = build(folder / "again", unpack_sdist(kept, folder))
        assert (again / WHEEL).read_bytes() == (kept / WHEEL).read_bytes()
        home = install(folder, kept / WHEEL)
        checks = try_out(home, folder)
        comment_on_change(home, folder)
        print(
            f"{WHEEL} installs, answers {RENT} USD and passes {checks} checks; {SDIST} builds the same wheel"
        )


if __name__ == "__main__":
    main()
