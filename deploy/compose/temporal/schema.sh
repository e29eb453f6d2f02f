# Container temporal-schema of docker-compose.yml. Databases and tables that are there already are left as they are.
set -eu
SQL_PASSWORD="$(cat /state/postgres-password)"
export SQL_PASSWORD

for pair in temporal:temporal temporal_visibility:visibility; do
  export SQL_DATABASE="${pair%:*}"
  temporal-sql-tool create-database
  temporal-sql-tool setup-schema --version 0.0
  temporal-sql-tool update-schema --schema-name "postgresql/v12/${pair#*:}"
done
