"""Put what `ironlaw diff` says under a pull request of GitHub, or a merge request of GitLab.

    ironlaw diff base/capacity capacity > comment.md
    python3 -I -m service.cli.comment comment.md

The comment is updated in place: it is found by its first line among those of whoever owns the token. Python's
own library is all that this imports, so that no other package runs with the token. The rest comes from the
environment of the job:

- GitHub Actions: GITHUB_TOKEN (permission `pull-requests: write`), GITHUB_REPOSITORY, GITHUB_API_URL,
  GITHUB_STEP_SUMMARY and the number of the pull request in the file GITHUB_EVENT_PATH
- GitLab CI: GITLAB_TOKEN (scope `api`), CI_API_V4_URL, CI_MERGE_REQUEST_PROJECT_ID and CI_MERGE_REQUEST_IID

The job of a fork has no token that may write, and must not have one: there the text goes to the summary of
the job, at GitLab to its log.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

MARKER = "<!-- ironlaw diff -->"
TIMEOUT_SECONDS = 30
PAGE_SIZE = 100
MOST_PAGES = 50
ACTIONS = "github-actions[bot]"
"""Author of the comments of a job's own token, which may not ask for its name."""


class Forge(NamedTuple):
    """Address of the comments of one request."""

    api: str
    headers: Mapping[str, str]
    comments: str
    comment: str
    """Address of one of them, up to its id."""
    update: str
    """Method that changes one."""
    author: str
    """Member of a comment that says whose it is."""
    name: str
    """Member in which a user's name is."""


class MayNotWrite(Exception):
    """There is no token, or one that may only read: that of a fork's job."""


class NoRedirects(HTTPRedirectHandler):
    """A token is for the host it was given to."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


def stop(message: str) -> NoReturn:
    """End with a line for the log of the job."""
    sys.exit(f"comment: {message}")


def setting(name: str) -> str:
    """Returns a variable of the environment."""
    return os.environ.get(name) or stop(f"{name} is not set")


def token(name: str) -> str:
    """The token, if this job has one."""
    found = os.environ.get(name)
    if not found:
        raise MayNotWrite
    return found


def forge() -> Forge:
    """Returns the forge that this job runs on."""
    if "GITHUB_REPOSITORY" in os.environ:
        event = json.loads(Path(setting("GITHUB_EVENT_PATH")).read_text())
        number = event.get("pull_request", {}).get("number") or stop("this is no event of a pull request")
        repository = f"/repos/{quote(setting('GITHUB_REPOSITORY'))}/issues"
        headers = {
            "Authorization": f"Bearer {token('GITHUB_TOKEN')}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        comments, one = f"{repository}/{int(number)}/comments", f"{repository}/comments/"
        return Forge(setting("GITHUB_API_URL"), headers, comments, one, "PATCH", "user", "login")
    project = quote(setting("CI_MERGE_REQUEST_PROJECT_ID"), safe="")
    notes = f"/projects/{project}/merge_requests/{int(setting('CI_MERGE_REQUEST_IID'))}/notes"
    headers = {"PRIVATE-TOKEN": token("GITLAB_TOKEN")}
    return Forge(setting("CI_API_V4_URL"), headers, notes, f"{notes}/", "PUT", "author", "username")


def ask(where: Forge, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # JSON
    """The answer of the forge; raises HTTPError where it refuses."""
    address = where.api.rstrip("/") + path
    if urlsplit(address).scheme != "https" and urlsplit(address).hostname not in ("localhost", "127.0.0.1"):
        stop("a token goes by https alone")
    data = None if body is None else json.dumps(body).encode()
    headers = {**where.headers, "Content-Type": "application/json", "User-Agent": "ironlaw-diff"}
    request = Request(address, data, headers, method=method)  # noqa: S310  # https, as seen above
    with build_opener(NoRedirects).open(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)


def own_name(where: Forge) -> str:
    """Returns the name of the owner of the token."""
    try:
        return str(ask(where, "GET", "/user")[where.name])
    except HTTPError as error:
        if where.update == "PATCH" and error.code == HTTPStatus.FORBIDDEN:
            return ACTIONS
        raise


def comments(where: Forge) -> Iterator[Mapping[str, Any]]:
    """All comments of the request."""
    for page in range(1, MOST_PAGES + 1):
        found = ask(where, "GET", f"{where.comments}?per_page={PAGE_SIZE}&page={page}")
        yield from found
        if len(found) < PAGE_SIZE:
            return
    stop(f"there are more than {MOST_PAGES * PAGE_SIZE} comments")


def post(where: Forge, text: str) -> str:
    """Update the comment that is there, or write one; says which."""
    name = own_name(where)
    for comment in comments(where):
        if str(comment["body"]).startswith(MARKER) and comment[where.author][where.name] == name:
            write(where, where.update, f"{where.comment}{int(comment['id'])}", text)
            return "updated"
    write(where, "POST", where.comments, text)
    return "written"


def write(where: Forge, method: str, path: str, text: str) -> None:
    """Send a comment."""
    try:
        ask(where, method, path, {"body": text})
    except HTTPError as error:
        if error.code == HTTPStatus.FORBIDDEN:
            raise MayNotWrite from None
        raise


def summarize(text: str) -> str:
    """Show the text where the job itself is shown; says where."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        sys.stdout.write(text)
        return "it is in this log"
    with Path(summary).open("a") as file:
        file.write(text)
    return "it is in the summary of the job"


def main(arguments: list[str]) -> None:
    """Post the file that is named."""
    if len(arguments) != 1:
        stop("usage: python3 -I -m service.cli.comment FILE")
    text = Path(arguments[0]).read_text()
    if not text.startswith(MARKER):
        stop("the file is nothing that `ironlaw diff` wrote")
    try:
        done = f"comment {post(forge(), text)}"
    except MayNotWrite:
        done = f"no comment: this job may not write any; {summarize(text)}"
    except HTTPError as error:
        stop(f"the forge answers {error.code} to {error.url and urlsplit(error.url).path}")
    except URLError as error:
        stop(f"the forge does not answer: {error.reason}")
    sys.stdout.write(f"{done}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
