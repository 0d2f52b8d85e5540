"""The methods and backends that are shipped; each family is registered through the entry points, as others' are."""
