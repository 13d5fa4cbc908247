"""Hard budgets of trials, jobs and days. Start reading at ``trial_budget``."""
