"""Ready-made builders and runners, one file a language."""
