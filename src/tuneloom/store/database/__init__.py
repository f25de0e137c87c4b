"""Reaching the database: connections, tables, migrations, and what every query needs."""
