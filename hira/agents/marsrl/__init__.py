"""The three roles of MarsRL: one solves, one looks for errors, one corrects them."""
