"""What only our own tests and benchmarks use; suites and fakes for plug-ins are in `tuneloom.testing`."""
