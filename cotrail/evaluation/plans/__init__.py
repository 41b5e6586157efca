"""Plans: what a run asks, reports and is compared with, sealed before its first step; and departures from them."""
