"""Growing and shrinking: signals for autoscalers, protection from scale-in, notices to leave."""
