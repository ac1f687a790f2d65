"""Where it runs: work pools, containers and targets; nothing here computes."""
