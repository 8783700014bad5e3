"""hira's rollouts for other engines: a workflow with its questions as an environment that they train on."""
