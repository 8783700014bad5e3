"""The two systems of MARS: one reasons and asks for what it needs, one reads it all and hands on what matters."""
