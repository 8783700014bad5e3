"""The rewards of rollouts: pure functions, and judges that ask a policy."""
