"""The scripted model server, for users' own tests. As a process: ``python -m seatrial.testing.model_server``."""

from seatrial.scripted_models.faults import Fault, FaultPlan
from seatrial.scripted_models.scripts import Act, Script, View
from seatrial.scripted_models.server import ScriptedModels, main

__all__ = ["Act", "Fault", "FaultPlan", "Script", "ScriptedModels", "View"]

if __name__ == "__main__":
    main()
