"""The eight baselines that HiRA is compared with (HiRA, Table 1 and appendix), and the one that MaMs is, on the same
tools and the same loop."""
