"""Messages of Ironlaw in a Slack channel, by an incoming webhook of Slack.

SLACK_URL_FILE   file with the address that Slack gave; whoever knows it can write to the channel
"""

import os
from pathlib import Path
from typing import Any

from receiving import Handle, post, serve, text_of

_SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def document(message: dict[str, Any]) -> dict[str, Any]:
    """What Slack is sent: a text that notifies nobody by what stands in it, and the page as a button."""
    text = text_of(message).translate(_SPECIAL)
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]
    if url := message["data"].get("page_url"):
        label = {"type": "plain_text", "text": "Read and decide"}
        blocks.append({"type": "actions", "elements": [{"type": "button", "text": label, "url": url}]})
    return {"text": text, "blocks": blocks}


def handler(url: str) -> Handle:
    """Hands messages to the channel behind ``url``."""
    return lambda _, message: post(url, document(message))


if __name__ == "__main__":
    serve(handler(Path(os.environ["SLACK_URL_FILE"]).read_text().strip()))
