"""The three agents of MaMs, the state that they hand on, and the chunks that they read."""
