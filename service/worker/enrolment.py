"""Enrolment of a host as a node: it exchanges a single-use token for a credential of its own."""

import os
import socket
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service import __version__
from service.protocol.base import Name
from service.protocol.nodes import DeviceKind, NodeEnrolmentRequest
from service.worker.client import NoAnswer, RequestRefused, ServiceClient, Unauthorized
from service.worker.credential import WorkerCredentials
from service.worker.errors import WorkerError
from service.worker.ids import generate_hex_128
from service.worker.state_directory import (
    ClaimRequest,
    FinishedRun,
    HeldLease,
    Installation,
    Node,
    StateDirectory,
    lock_home,
)

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def create_token(address: str, api_key: str, *, ca_file: Path | None) -> str:
    """Creates a single-use token, with an API key that many hosts may share.

    Raises:
        WorkerError: The service refuses or does not answer.
    """
    client = ServiceClient(address, ca_file=ca_file)
    try:
        return client.create_token(api_key)
    except Unauthorized as error:
        raise WorkerError(f"the API key is not accepted: {error}") from None
    except (RequestRefused, NoAnswer) as error:
        raise WorkerError(f"no enrolment token was created: {error}") from None
    finally:
        client.close()


def enrol_node(
    home: StateDirectory,
    address: str,
    token: str,
    *,
    device: DeviceKind,
    name: str | None,
    ca_file: Path | None,
    again: bool,
) -> Node:
    """Enrols a host, and stores its credential before anything is reported.

    The installation id is on the disk before it is sent: repeated after a lost answer, it is the same node.

    Raises:
        WorkerError: This host is enrolled already, a worker runs, or the service refuses.
    """
    held = lock_home(home)
    try:
        return _enrol_locked(home, address, token, device=device, name=name, ca_file=ca_file, again=again)
    finally:
        os.close(held)


def _enrol_locked(
    home: StateDirectory,
    address: str,
    token: str,
    *,
    device: DeviceKind,
    name: str | None,
    ca_file: Path | None,
    again: bool,
) -> Node:
    if home.load_state(Node) is not None and not again:
        raise WorkerError("this host is already enrolled; for a new credential: ironlaw worker enrol --again")
    installation = home.load_state(Installation)
    if installation is None:
        installation = Installation(installation_id=generate_hex_128())
        home.save_state(installation)
    enrolment = _build_enrolment(token, installation, device, name)
    client = ServiceClient(address, ca_file=ca_file)
    try:
        enrolled = client.enrol_node(enrolment)
    except Unauthorized as error:
        raise WorkerError(f"the enrolment token is not accepted: {error}") from None
    except RequestRefused as error:
        raise WorkerError(f"the service refused the enrolment: {error}") from None
    except NoAnswer as error:
        raise WorkerError(f"{error}; it is safe to repeat the command") from None
    finally:
        client.close()
    node = Node(node_id=enrolled.node_id, service=client.address, device=device)
    WorkerCredentials.store(home.credential, enrolled.credential)
    home.save_state(node)
    home.delete_state(HeldLease)
    home.delete_state(FinishedRun)
    home.delete_state(ClaimRequest)
    return node


def _build_enrolment(
    token: str, installation: Installation, device: DeviceKind, name: str | None
) -> NodeEnrolmentRequest:
    optional: dict[str, Any] = {}
    chosen = _resolve_name(name)
    if chosen is not None:
        optional["name"] = chosen
    try:
        return NodeEnrolmentRequest(
            token=token,
            installation_id=installation.installation_id,
            device=device,
            worker_version=__version__,
            **optional,
        )
    except ValidationError:
        raise WorkerError("the enrolment token is not valid: it is one line of letters and digits") from None


def _resolve_name(name: str | None) -> str | None:
    """Returns the chosen name, or that of the host if it is a valid name."""
    try:
        return _NAME.validate_python(name if name is not None else socket.gethostname().lower())
    except ValidationError:
        if name is None:
            return None
        raise WorkerError("the name of a node must consist of a-z, 0-9, dot, dash and underscore") from None
