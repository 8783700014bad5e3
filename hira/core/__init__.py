"""The foundation of every part: messages, the policy interface, events, errors, budgets, tools, prompts."""
