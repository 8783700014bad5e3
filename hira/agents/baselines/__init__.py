"""The roles of the baselines that HiRA is compared with: mostly one role, alone with its tools."""
