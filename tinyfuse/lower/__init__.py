"""From stages and a schedule to loop nests."""
