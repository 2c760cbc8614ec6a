"""Hardware prices: dated purchase prices of accelerators, servers and racks."""
