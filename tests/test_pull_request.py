"""The comment under a pull request: written once, updated in place, by nobody else's leave."""

import contextlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from service.cli.diff_markdown import MARKER
from tests.image import ROOT
from tests.test_deploy import DEPLOY, options_of

FOLDER = DEPLOY / "pull-request"
SCRIPT = ROOT / "service" / "cli" / "comment.py"
TOKEN = "forge-token-never-shown"  # noqa: S105  # opens nothing


class Forge(ThreadingHTTPServer):
    """What the two forges answer about comments of one request."""

    daemon_threads = True

    def __init__(self, name, member, login):
        super().__init__(("127.0.0.1", 0), Answering)
        self.member, self.login, self.name = member, login, name
        self.comments, self.seen, self.who = [], [], {login: name}
        self.status, self.redirect, self.is_read_only = 200, "", False

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def written(self, body, name):
        comment = {"id": 700 + len(self.comments), "body": body, self.member: {self.login: name}}
        self.comments.append(comment)
        return comment


class Answering(BaseHTTPRequestHandler):
    """Each request is kept; the token is looked at like the forges do."""

    def answer(self):
        forge, url = self.server, urlsplit(self.path)
        length = int(self.headers.get("content-length", 0))
        sent = json.loads(self.rfile.read(length)) if length else None
        forge.seen.append((self.command, url.path, sent))
        told = TOKEN in (self.headers.get("authorization", "") + self.headers.get("private-token", ""))
        if forge.redirect:
            return self.say(302, {}, location=forge.redirect)
        status = 403 if forge.is_read_only and self.command != "GET" else forge.status
        if not told or status != 200:
            return self.say(401 if not told else status, {"message": "no"})
        if url.path == "/user":
            return self.say(200 if forge.who else 403, forge.who)
        if self.command == "POST":
            return self.say(201, forge.written(sent["body"], forge.name))
        if self.command in ("PATCH", "PUT"):
            comment = next(each for each in forge.comments if str(each["id"]) == url.path.rsplit("/", 1)[1])
            comment["body"] = sent["body"]
            return self.say(200, comment)
        asked = parse_qs(url.query)
        size, page = int(asked["per_page"][0]), int(asked["page"][0])
        return self.say(200, forge.comments[size * (page - 1) : size * page])

    do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815  # the library's names

    def say(self, status, body, **headers):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def forge_of(kind):
    if kind == "gitlab":
        return Forge("bot", "author", "username")
    forge = Forge("github-actions[bot]", "user", "login")
    forge.who = {}  # the token of a job may not ask who it is
    return forge


@contextlib.contextmanager
def answering_forge(kind):
    server = forge_of(kind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.kind = kind
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(params=["github", "gitlab"])
def forge(request):
    with answering_forge(request.param) as server:
        yield server


@pytest.fixture
def job(forge, tmp_path):
    return variables_of_job(forge, tmp_path)


def variables_of_job(forge, folder):
    """Variables of a job."""
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 41}}))
    if forge.kind == "github":
        return {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": "acme/models",
            "GITHUB_API_URL": forge.address,
            "GITHUB_EVENT_PATH": str(event),
        }
    return {
        "GITLAB_TOKEN": TOKEN,
        "CI_API_V4_URL": forge.address,
        "CI_MERGE_REQUEST_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "41",
    }


@pytest.fixture
def comment(job, tmp_path):
    """Runs the script on a text; its output and status."""

    def post(text, **variables):
        file = tmp_path / "comment.md"
        file.write_text(text)
        command = [sys.executable, "-I", SCRIPT, file]
        env = {"PATH": "/usr/bin:/bin", **job, **variables}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
        assert TOKEN not in done.stdout + done.stderr
        return done.stdout + done.stderr, done.returncode

    return post


@pytest.mark.enable_socket
class TestTheScript:
    def test_writes_once_and_updates_then(self, forge, comment):
        """Among more than a page of comments, one of which somebody else made to look like ours."""
        for place in range(120):
            forge.written(f"comment {place}", "somebody")
        forge.written(f"{MARKER}\nnot ours", "mallory")
        assert comment(f"{MARKER}\nfirst") == ("comment written\n", 0)
        assert comment(f"{MARKER}\nsecond") == ("comment updated\n", 0)
        assert [each["body"] for each in forge.comments[120:]] == [f"{MARKER}\nnot ours", f"{MARKER}\nsecond"]
        method, path, sent = forge.seen[-1]
        assert sent == {"body": f"{MARKER}\nsecond"}
        assert (method, path) == {
            "github": ("PATCH", "/repos/acme/models/issues/comments/821"),
            "gitlab": ("PUT", "/projects/7/merge_requests/41/notes/821"),
        }[forge.kind]

    def test_what_goes_wrong_is_one_line(self, forge, comment):
        assert comment("something else")[0] == "comment: the file is nothing that `ironlaw diff` wrote\n"
        forge.status = 500
        said, status = comment(f"{MARKER}\n")
        assert (said, status) == ("comment: the forge answers 500 to /user\n", 1)
        forge.redirect = "http://127.0.0.1:9/elsewhere"
        said, status = comment(f"{MARKER}\n")
        assert (said, status) == ("comment: the forge answers 302 to /user\n", 1)
        api = "GITHUB_API_URL" if forge.kind == "github" else "CI_API_V4_URL"
        said, status = comment(f"{MARKER}\n", **{api: "http://forge.example"})
        assert (said, status) == ("comment: a token goes by https alone\n", 1)

    def test_without_a_token_that_writes_it_is_in_the_summary(self, forge, comment, tmp_path):
        """A fork's job: nothing of it fails, and nobody needs a token to read what a change costs."""
        summary = tmp_path / "summary.md"
        text, where = f"{MARKER}\nfirst\n", {"GITHUB_STEP_SUMMARY": str(summary)}
        forge.is_read_only = True
        told = "no comment: this job may not write any; it is in the summary of the job\n"
        assert comment(text, **where) == (told, 0)
        none = {"GITHUB_TOKEN": "", "GITLAB_TOKEN": ""}
        assert comment(text, **where, **none) == (told, 0)
        assert summary.read_text() == 2 * text
        assert forge.comments == []
        log = f"{text}no comment: this job may not write any; it is in this log\n"
        assert comment(text, **none) == (log, 0)


def steps(kind):
    """The commands of the workflow, each with whether it has the token."""
    if kind == "github":
        (job,) = yaml.safe_load((FOLDER / "github.yml").read_text())["jobs"].values()
        *_, told, posted = job["steps"]
        return [(told["run"], False), (posted["run"], "GITHUB_TOKEN" in posted["env"])]
    (command,) = yaml.safe_load((FOLDER / "gitlab.yml").read_text())["capacity"]["script"]
    return [(command, True)]


def test_a_change_never_runs_with_a_token_that_writes():
    text = (FOLDER / "github.yml").read_text()
    workflow = yaml.safe_load(text)
    assert set(workflow[True]) == {"pull_request"}  # `on` is true to YAML
    (job,) = workflow["jobs"].values()
    checkout, *others = job["steps"]
    assert checkout["with"]["persist-credentials"] is False
    runs = [step for step in others if "run" in step]
    assert {step["working-directory"] for step in runs} == {"${{ runner.temp }}"}
    assert [step["name"] for step in others if "github.token" in str(step)] == ["Comment"]


def git(folder, *arguments):
    done = subprocess.run(
        ["/usr/bin/git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository whose last commit changes a question; and what stands for the commands of the package."""
    repository, tools = tmp_path / "repository", tmp_path / "tools"
    (repository / "capacity").mkdir(parents=True)
    tools.mkdir()
    command = tools / "ironlaw"
    command.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >"{tmp_path}/asked"\npwd >"{tmp_path}/where"\n'
        f'env >"{tmp_path}/environment"\necho "{MARKER}"\n'
        'cat "$2/a.json" "$3/a.json"\nexit 3\n'
    )
    command.chmod(0o755)
    python = tools / "python3"
    python.write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "-I -m service.cli.comment" ] && shift 3 || exit 9\n'
        f'exec "{sys.executable}" -I "{SCRIPT}" "$@"\n'
    )
    python.chmod(0o755)
    git(repository, "init", "--quiet")
    script = repository / "service" / "cli" / "comment.py"
    script.parent.mkdir(parents=True)
    for text in ("before", "after"):
        (repository / "capacity" / "a.json").write_text(f"{text}\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", text)
        script.write_text("raise SystemExit('what the change brings is not run')\n")
    return repository


@pytest.mark.enable_socket
def test_the_workflow_comments_and_keeps_the_status(forge, job, checkout, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = {
        **job,
        "GITHUB_WORKSPACE": str(checkout),
        "PATH": f"{tmp_path}/tools:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "LIMIT": "10%",
        "BASE": git(checkout, "rev-parse", "HEAD~1"),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(checkout, "rev-parse", "HEAD~1"),
    }
    for command, has_token in steps(forge.kind):
        done = subprocess.run(
            ["/bin/bash", "-e", "-c", command],
            cwd=checkout if forge.kind == "gitlab" else temporary,
            env={name: value for name, value in variables.items() if has_token or not name.endswith("TOKEN")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 3, done.stderr
    assert [each["body"] for each in forge.comments] == [f"{MARKER}\nbefore\nafter\n"]
    assert Path((tmp_path / "where").read_text().strip()) not in (checkout, *checkout.rglob("*"))
    if forge.kind == "github":
        assert TOKEN not in (tmp_path / "environment").read_text()
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "diff"
    name, options = options_of(["diff", *asked[3:]])
    assert (name, options) == ("diff", ["--fail-above", "10%"])
