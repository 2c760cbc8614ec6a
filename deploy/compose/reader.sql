-- The role that Grafana reads the tables of its panels as. It is made again, with the password of now, as often as one
-- likes: docker compose exec -T database psql --username postgres --dbname ironlaw <deploy/compose/reader.sql
\set ON_ERROR_STOP on
SET log_min_error_statement = panic;  -- the log would show the password of a statement that fails
\set password `cat "${IRONLAW_SECRETS:-/run/secrets}/database-reader-password"`
SELECT 'CREATE ROLE ironlaw_reader LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ironlaw_reader') \gexec
ALTER ROLE ironlaw_reader PASSWORD :'password';
ALTER ROLE ironlaw_reader SET default_transaction_read_only = on;
ALTER ROLE ironlaw_reader SET statement_timeout = '10s';
GRANT CONNECT ON DATABASE :"DBNAME" TO ironlaw_reader;
GRANT USAGE ON SCHEMA public TO ironlaw_reader;
GRANT SELECT ON actual_charges, approval_steps, approvals, budgets, quotes TO ironlaw_reader;
