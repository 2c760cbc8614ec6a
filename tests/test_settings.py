"""Settings that are files of one secret each."""

import pytest
from pydantic import ValidationError

from service.app.settings import Settings
from service.kit.security.keyring import Keyring

URL = "postgresql+psycopg://ironlaw@database:5432/ironlaw"
SIGN_IN = {
    "IRONLAW_OIDC_ISSUER": "https://login.example.com",
    "IRONLAW_OIDC_AUDIENCE": "ironlaw",
    "IRONLAW_OIDC_CLIENT_ID": "plan",
    "IRONLAW_PUBLIC_URL": "https://plan.example.com",
}


@pytest.fixture
def settings(monkeypatch):
    """The settings of an environment with these variables."""

    def of(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return Settings()

    return of


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a secret"
    path.write_text("pass/w@rd: ß of forty characters, at the least\n", encoding="utf-8")
    path.chmod(0o444)
    return path


SECRET = "pass/w@rd: ß of forty characters, at the least"  # noqa: S105


def test_the_password_of_the_database_is_read_from_its_file(settings, file):
    made = settings(IRONLAW_DATABASE_URL=URL, IRONLAW_DATABASE_PASSWORD_FILE=file)
    assert (made.database.username, made.database.password) == ("ironlaw", SECRET)
    assert SECRET not in repr(made) + repr(made.database) + str(made.database)
    file.chmod(0o600)
    file.write_text("the next one")
    assert made.database.password == "the next one"  # noqa: S105


def test_it_belongs_to_an_address(settings, file):
    with pytest.raises(ValidationError, match="IRONLAW_DATABASE_URL"):
        settings(IRONLAW_DATABASE_PASSWORD_FILE=file)


def test_one_that_is_missing_is_named(settings, tmp_path):
    made = settings(IRONLAW_DATABASE_URL=URL, IRONLAW_DATABASE_PASSWORD_FILE=tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="none"):
        assert made.database


def test_the_secret_of_the_service_is_read_from_its_file(settings, file):
    made = settings(IRONLAW_SECRET_KEY_FILE=file)
    assert made.keyring.compute_fingerprint() == Keyring(SECRET.encode()).compute_fingerprint()


def test_the_secret_of_the_client_is_read_from_its_file_and_may_be_none(settings, file):
    made = settings(**SIGN_IN, IRONLAW_OIDC_CLIENT_SECRET_FILE=file)
    assert made.login_client.secret == SECRET
    file.chmod(0o600)
    file.write_text("\n")  # as it is made: a public client
    assert made.login_client.secret == ""


@pytest.mark.parametrize("name", ["DATABASE_PASSWORD_FILE", "SECRET_KEY_FILE", "OIDC_CLIENT_SECRET_FILE"])
def test_a_file_without_a_name_is_none(settings, name):
    """As a compose file passes on what is not set; the path of an empty text would be this folder."""
    assert getattr(settings(**{f"IRONLAW_{name}": ""}), name.lower()) is None
