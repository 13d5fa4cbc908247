"""From stored trials to numbers, listings and exports."""
