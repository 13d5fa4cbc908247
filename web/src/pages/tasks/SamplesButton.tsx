import { useAct } from "@/api/act";
import { api } from "@/api/client";
import { Button } from "@/parts/Button";
import { Trouble } from "@/parts/Notice";

export function SamplesButton({ main = false }: { main?: boolean }) {
  const { busy, error, act } = useAct(["tasks"]);
  return (
    <>
      <Button
        kind={main ? "main" : "plain"}
        disabled={busy}
        onClick={() => void act(() => api.POST("/api/v1/samples"))}
      >
        Try a sample
      </Button>
      {error ? <Trouble error={error} /> : null}
    </>
  );
}
