"""Models that run in this process: what there is, how it is fetched, and the policy that makes a tiny one useful."""
