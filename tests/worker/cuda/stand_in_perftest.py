"""A program of perftest: a server, or its client, that prints what a test has told it to.

Beside it lie ``behaviour.json``, and ``told``, to which each call adds its words. Without an address it is
the server, which listens before anything else, as those of perftest do.
"""

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

USAGE = """Usage:
  ib_write_bw            start a server and wait for connection
  ib_write_bw <host>     connect to server at <host>

Options:
  -a, --all  Run sizes from 2 till 2^23
"""
CUDA = "      --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing\n"
DMA_BUF = "      --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing\n"


INITIALIZED = """initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 17:00

Picking device No. 0
making it the current CUDA Ctx
CUDA device integrated: 0
using DMA-BUF for GPU buffer address at 0x7fe93a000000 aligned at 0x7fe93a000000 with aligned size 2097152
allocated GPU buffer of a 2097152 address at 0x5596 for type CUDA_MEM_DEVICE
"""
"""What precedes the table where memory of a device is used, whatever becomes of the test."""


def main():
    folder = Path(__file__).parent
    behaves = json.loads((folder / "behaviour.json").read_text())
    words = sys.argv[1:]
    if words == ["--version"]:
        sys.exit(print("Version: 6.24") or 0)
    if words == ["--help"]:
        print(USAGE + "".join({"cuda": CUDA, "dmabuf": DMA_BUF}[each] for each in behaves["built_with"]))
        sys.exit(1)
    with (folder / "told").open("a") as told:
        told.write(f"{os.environ.get('CUDA_VISIBLE_DEVICES')} {' '.join([Path(__file__).name, *words])}\n")
    (folder / f"group-{os.getpid()}").write_text(str(os.getpgid(0)))
    port = int(words[words.index("-p") + 1])
    if words[-1] == "127.0.0.1":
        talk(socket.create_connection(("127.0.0.1", port)), words, behaves, "client")
        sys.stdout.write(behaves["printed"])
    else:
        serve(folder, port, words, behaves)


def serve(folder, port, words, behaves):
    taken = len((folder / "told").read_text().splitlines()) <= behaves.get("taken", 0)
    if behaves.get("server") == "deaf":
        time.sleep(60)
    if taken:
        sys.exit(sys.stderr.write("Couldn't listen to port\n") and 1)
    with socket.create_server(("127.0.0.1", port)) as listening:
        talk(listening.accept()[0], words, behaves, "server")


def talk(connection, words, behaves, name):
    """Registers memory once both are there, as perftest does, and exchanges a byte."""
    with connection:
        if "--use_cuda_dmabuf" in words:
            sys.stdout.write(INITIALIZED)
        for refused in behaves.get("refuses", []):
            if refused in words and not (refused == "--use_cuda=0" and "--use_cuda_dmabuf" in words):
                sys.exit(sys.stderr.write("Couldn't allocate MR with error=95\n failed to create mr\n") and 1)
        match behaves.get(name):
            case "fails":
                sys.exit(sys.stderr.write(" Completion with error at client\n Failed status 12\n") and 3)
            case "hangs":
                time.sleep(60)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"1")
            connection.recv(1)


main()
