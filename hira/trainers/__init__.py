"""Training of the roles: workflows become rollouts, rollouts rows, rows credit, credit an update of LoRA adapters.

Needs `pip install 'hira[train]'`. Rollouts, rows, credit and the plan are free of torch; only `grpo` imports TRL.
"""
