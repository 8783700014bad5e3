"""What every part stands on: messages, the policy seam, events, errors, budgets, tools, prompts."""
