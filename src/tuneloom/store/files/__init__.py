"""Where the content of files lies: a folder, rows of the database, or an object store."""
