"""Plans, isolated workers and the journal: how cells become outcomes that are never lost."""
