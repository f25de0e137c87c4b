"""What a service keeps beyond runs: tenants, tokens, models, who submitted what, bundles and an audit log."""
