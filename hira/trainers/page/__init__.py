"""The page of a training run: one file, written as training goes, that loads nothing and runs nothing."""
