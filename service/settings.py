"""Settings, from environment variables with the prefix IRONLAW_."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url


class Settings(BaseSettings):
    """Everything that an operator can set."""

    model_config = SettingsConfigDict(env_prefix="IRONLAW_", use_attribute_docstrings=True, frozen=True)

    host: str = "127.0.0.1"
    """Address to serve on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to serve on; 0 takes a free one."""
    data_dir: Path = Path("data")
    """Folder of the embedded database and its backups."""
    database_url: str = ""
    """A PostgreSQL address such as postgresql+psycopg://user@host/name; empty for the embedded database."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 2**20
    """Largest request body."""

    @property
    def database(self) -> URL:
        """The address of the database, the embedded one by default."""
        if self.database_url:
            return make_url(self.database_url)
        return URL.create("sqlite", database=str(self.data_dir / "ironlaw.db"))
