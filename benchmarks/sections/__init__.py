"""The page of benchmarks by what was asked."""
