"""Migrations of the store's tables, run by ``store_sql.migrate.upgrade`` inside one transaction."""
