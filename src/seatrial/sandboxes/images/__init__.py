"""Where images come from: the order of the contract, builds that happen once, and the stores that keep them."""
