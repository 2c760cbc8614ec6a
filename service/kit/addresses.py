"""Addresses of hosts."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns true if a host name or address is this host's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
