#!/bin/sh
# PostgreSQL as the official image starts it: makes a database of POSTGRES_USER in an empty volume, asks for the password.
set -eu
programs=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data
mkdir -p "$data"
chown postgres "$data" /var/run/postgresql
chmod 700 "$data"
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [ ! -s "$data/PG_VERSION" ]; then
    secret=$(mktemp)
    chown postgres "$secret"
    printf %s "$POSTGRES_PASSWORD" > "$secret"
    as_postgres "$programs/initdb" -D "$data" -U "$POSTGRES_USER" -A scram-sha-256 --pwfile="$secret" -E UTF8 --locale=C.UTF-8
    rm "$secret"
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | as_postgres "$programs/postgres" --single -D "$data" postgres
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$programs/postgres" -D "$data" -c listen_addresses='*'
