"""A project small enough to change."""
