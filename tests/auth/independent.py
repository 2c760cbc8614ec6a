"""`make sign-in`: signs in at an OpenID Connect provider that somebody else wrote, in a browser.

With `SERVE=yes` both stay, for a person to try. The provider is `oidc-provider` of npm, on loopback.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from tests.browsing import find_chromium
from tests.clients.packages import NPM
from tests.contract.node import NODE
from tests.serving import serving

ROOT = Path(__file__).resolve().parents[2]
SOURCE, BUILD = ROOT / "deploy" / "sign-in", ROOT / "build" / "sign-in"
START_SECONDS = 30
PERSON = "erin@example.org"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def install():
    """The provider with what its lock file names."""
    shutil.copytree(SOURCE, BUILD, dirs_exist_ok=True)
    command = (NODE, NPM, "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
    subprocess.run(list(map(str, command)), cwd=BUILD, check=True)


@contextlib.contextmanager
def providing(issuer, service):
    """The provider, ready."""
    process = subprocess.Popen([NODE, "provider.mjs", issuer, service], cwd=BUILD)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                found = httpx.get(f"{issuer}/.well-known/openid-configuration", trust_env=False).json()
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        assert found["issuer"] == issuer
        yield
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def settings(port, issuer, service):
    """Settings of a service whose people sign in there."""
    return {
        "IRONLAW_MODE": "tenant",
        "IRONLAW_PORT": str(port),
        "IRONLAW_PUBLIC_URL": service,
        "IRONLAW_OIDC_ISSUER": issuer,
        "IRONLAW_OIDC_AUDIENCE": "ironlaw",
        "IRONLAW_OIDC_CLIENT_ID": "ironlaw",
        "IRONLAW_OIDC_SCOPE_CLAIM": "roles",
    }


def check(service, issuer):
    """Signs in with consent, again without a prompt, and out here and there."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        context = browser.new_context()
        page, asked = context.new_page(), f"{service}/ask?accelerator_count=2"
        page.goto(asked)
        assert page.url.startswith(f"{issuer}/interaction/"), page.url
        page.fill("input[name=login]", PERSON)
        page.fill("input[name=password]", "any")
        page.click("button[type=submit]")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(asked)
        assert PERSON in page.inner_text("header")
        for cookie in context.cookies():
            if "ironlaw" in cookie["name"]:
                context.clear_cookies(name=cookie["name"])
        page.goto(f"{service}/plans")
        assert page.url == f"{service}/plans", page.url
        page.click("text=Sign out")
        page.click("text=Sign out at your issuer too")
        page.click("text=Yes, sign me out")
        page.wait_for_url(f"{service}/signed-out**")
        page.goto(f"{service}/plans")
        assert page.url.startswith(f"{issuer}/interaction/"), page.url
        browser.close()
    print("signed in with consent, again without a prompt, and out at both", flush=True)


def main():
    """Installs, starts both and goes through, or stays."""
    install()
    port, issuer = free_port(), f"http://127.0.0.1:{free_port()}"
    service = f"http://127.0.0.1:{port}"
    data = BUILD / "data"
    shutil.rmtree(data, ignore_errors=True)
    with providing(issuer, service), serving(data, is_prepared=False, **settings(port, issuer, service)):
        if os.environ.get("SERVE"):
            print(f"{service}/ask: sign in with any name and password; Ctrl-C ends it", flush=True)
            signal.sigwait({signal.SIGINT, signal.SIGTERM})
        else:
            check(service, issuer)


if __name__ == "__main__":
    sys.exit(main())
