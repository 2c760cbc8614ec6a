"""Wheel and source distribution: whole, licensed, of one version, and the same from either source."""

import json
import re

import pytest

from service import __version__
from service.planning import METHOD_VERSION
from tests.image import ROOT
from tests.package import WHEEL, build, files_of_wheel, metadata_of_wheel, unpack_sdist

RELEASE = re.compile(r"(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


def files_of_checkout():
    """Every file of the packages, data included."""
    found = (path for name in ("service", "migrations") for path in (ROOT / name).rglob("*"))
    return {path.relative_to(ROOT).as_posix() for path in found if path.is_file() and path.suffix != ".pyc"}


def test_the_wheel_has_every_file_of_the_packages(built):
    assert files_of_wheel(built) == files_of_checkout()
    assert {"service/kit/http/page.css", "migrations/script.py.mako"} < files_of_wheel(built)


def test_the_source_distribution_builds_the_same_wheel(built, tmp_path):
    again = build(tmp_path / "again", unpack_sdist(built, tmp_path))
    assert (again / WHEEL).read_bytes() == (built / WHEEL).read_bytes()


def test_both_carry_licence_and_notice(built, tmp_path):
    metadata, texts = metadata_of_wheel(built)
    assert metadata["License-Expression"] == "Apache-2.0"
    source = unpack_sdist(built, tmp_path)
    for name in ("LICENSE", "NOTICE"):
        assert texts[name] == (ROOT / name).read_bytes() == (source / name).read_bytes()


@pytest.mark.parametrize(
    "named", ["Ember", "silybench-data", "models.dev", "OpenEI", "European Central Bank"]
)
def test_the_notice_names_sources_that_ask_for_it(named):
    shipped = "".join(path.read_text() for path in (ROOT / "service" / "catalog").glob("*/shipped.json"))
    assert named in (ROOT / "NOTICE").read_text()
    assert named in shipped


def test_package_document_and_changelog_have_one_version(built):
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    assert metadata_of_wheel(built)[0]["Version"] == __version__ == document["info"]["version"]
    assert RELEASE.findall((ROOT / "CHANGELOG.md").read_text())[0] == __version__


def test_the_method_of_answers_is_in_the_changelog_and_the_methods():
    newest = (ROOT / "CHANGELOG.md").read_text().partition("### Answers")[2].split()[1]
    assert newest == f"{METHOD_VERSION}:"
    assert f"method version `{METHOD_VERSION}`" in (ROOT / "docs" / "methods" / "README.md").read_text()
