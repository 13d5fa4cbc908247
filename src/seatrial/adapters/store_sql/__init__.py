"""The store on SQLAlchemy Core: one SQL for SQLite and PostgreSQL. ``wiring`` opens ``store.SqlStore``.

Every operation is a plain function of one connection. It runs on SQLite's writer thread or, through SQLAlchemy's
greenlets, on asyncpg.
"""
