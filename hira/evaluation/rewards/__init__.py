"""What a rollout is worth: pure functions, and judges that ask a policy."""
