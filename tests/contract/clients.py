"""Clients made from the document, once for all tests, and the examples written with them."""

import re
import subprocess
import sys
from pathlib import Path

from tests.contract.node import FOLDER, installed, node
from tests.contract.test_document import PATH, ROOT
from tests.serving import environment

CLIENTS = ROOT / "clients"
SCRIPTS = Path(sys.executable).parent


def typescript(folder):
    """Folder of the calls and examples, compiled with the client that was made from the document."""
    source, program = folder / "source", folder / "program"
    generate = ("--input", PATH, "--output", source / "client", "--client", "@hey-api/client-fetch")
    node(installed("openapi-ts"), *generate, "--silent", "--no-log-file", cwd=folder)
    files = [FOLDER / "calls.ts", *sorted((CLIENTS / "typescript").glob("*.ts"))]
    sources = [source / file.name for file in files]
    for file, copy in zip(files, sources, strict=True):
        copy.write_text(file.read_text())
    language = ("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "commonjs")
    node(installed("tsc"), "--strict", *language, "--outDir", program, *sources, cwd=folder)
    return program


def python(folder, document=PATH):
    """The package that the command of the guide makes, without a warning, beside the examples."""
    guide = (ROOT / "docs" / "guides" / "clients.md").read_text()
    (command,) = re.findall(r"^\.venv/bin/openapi-python-client .*$", guide, re.MULTILINE)
    package = folder / "clients" / "python" / "ironlaw_client"
    package.parent.mkdir(parents=True)
    (package.parent / "templates").symlink_to(CLIENTS / "python" / "templates")
    (folder / "docs").mkdir()
    (folder / "docs" / "openapi.json").symlink_to(document)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(SCRIPTS)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment(folder, PATH=f"{SCRIPTS}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "Generating clients/python/ironlaw_client\n",
        "",
    )
    return package
