"""Writes the sources of both client packages that follow from docs/openapi.json."""

import json
from pathlib import Path

from clients.generator.document import read_document
from clients.generator.python import write_python
from clients.generator.typescript import write_typescript

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "clients" / "python" / "ironlaw-client" / "src" / "ironlaw_client"
TYPESCRIPT = ROOT / "clients" / "typescript" / "ironlaw-client"


def write_sources() -> dict[Path, str]:
    """Returns the text of each generated file by its path."""
    document = read_document(json.loads((ROOT / "docs" / "openapi.json").read_text()))
    python = {PYTHON / name: text for name, text in write_python(document).items()}
    typescript = {TYPESCRIPT / "src" / name: text for name, text in write_typescript(document).items()}
    package = {
        path: _set_version(path, document.version) for path in sorted(TYPESCRIPT.glob("package*.json"))
    }
    return {**python, **typescript, **package}


def _set_version(path: Path, version: str) -> str:
    """Returns a manifest of npm with the version of the document, which its lock file has twice."""
    manifest = json.loads(path.read_text())
    manifest["version"] = version
    if "packages" in manifest:
        manifest["packages"][""]["version"] = version
    return json.dumps(manifest, indent=2) + "\n"


def main() -> None:
    """Write them."""
    for path, text in write_sources().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
