import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, unwrap } from "@/api/client";
import { Button } from "@/parts/Button";
import { Trouble } from "@/parts/Notice";

/** One click from an empty page to a running job: the samples with the oracle. */
export function TrySample() {
  const navigate = useNavigate();
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  async function launch() {
    setState({ busy: true });
    try {
      const samples = await unwrap(api.POST("/api/v1/samples"));
      const tasks = samples.items.map((task) => task.digest);
      const job = await unwrap(
        api.POST("/api/v1/jobs", { body: { name: "samples", tasks, agents: [{ name: "oracle" }] } as never }),
      );
      await navigate({ to: "/jobs/$job", params: { job: String(job.id) } });
    } catch (error) {
      setState({ busy: false, error });
    }
  }
  return (
    <div>
      <Button kind="main" disabled={state.busy} onClick={() => void launch()}>
        {state.busy ? "Starting …" : "Try the samples"}
      </Button>
      {state.error ? <Trouble error={state.error} /> : null}
    </div>
  );
}
