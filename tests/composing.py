"""The compose file as Compose reads it: variables in their places, settings passed on."""

import os
import re
import subprocess

import yaml

from tests.image import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("image") == "ironlaw"}
_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?P<kind>:[-+])(?P<rest>[^}]*)\})")


def resolved(text, given):
    """A text with the variables that Compose puts in it."""

    def value(found):
        if found["escaped"]:
            return "$"
        value = given.get(found["name"], "")
        if found["kind"] == ":+":
            return found["rest"] if value else ""
        return value or found["rest"]

    return _VARIABLE.sub(value, text)


def environment_of(name, given):
    """The variables of a service, where those of ``given`` are set."""
    settings = SERVICES[name].get("environment", {})
    passed = {setting: given[setting] for setting, text in settings.items() if not text and setting in given}
    return passed | {setting: resolved(text, given) for setting, text in settings.items() if text}


def command_of(name, given):
    """The words that a service runs `ironlaw` with."""
    return [resolved(word, given) for word in SERVICES[name]["command"]]


def make_secrets(folder, **variables):
    """The folder of the secrets, as the script makes it."""
    own = {"PATH": os.environ["PATH"], **variables}
    subprocess.run([ROOT / "deploy" / "compose" / "make-secrets", folder], env=own, check=True)
    return folder
