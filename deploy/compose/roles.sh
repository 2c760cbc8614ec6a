#!/bin/sh
# The roles of the database, made once when its volume is new. `ironlaw_owner` migrates and owns the schema; `ironlaw`,
# which the service runs as, reads and writes rows and nothing else. Neither is a superuser or may use another database.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
SET log_min_error_statement = panic;  -- the log would show the passwords of a statement that fails
\set owner_password `cat "${IRONLAW_SECRETS:-/run/secrets}/database-owner-password"`
\set password `cat "${IRONLAW_SECRETS:-/run/secrets}/database-password"`
BEGIN;
CREATE ROLE ironlaw_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE ironlaw LOGIN PASSWORD :'password';
ALTER DATABASE :"DBNAME" OWNER TO ironlaw_owner;
REVOKE ALL ON DATABASE :"DBNAME", postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO ironlaw;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO ironlaw;
ALTER DEFAULT PRIVILEGES FOR ROLE ironlaw_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ironlaw;
ALTER DEFAULT PRIVILEGES FOR ROLE ironlaw_owner IN SCHEMA public GRANT USAGE ON SEQUENCES TO ironlaw;
COMMIT;
SQL
