"""APIs of other systems: TBench Runner and AgentCompass."""
