"""What runs and in which order, and the command line that starts it."""
