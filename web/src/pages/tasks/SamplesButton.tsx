import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api } from "@/api/client";
import { Button } from "@/parts/Button";
import { Trouble } from "@/parts/Notice";

export function SamplesButton({ main = false }: { main?: boolean }) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>();
  async function add() {
    setError(undefined);
    try {
      await api.POST("/api/v1/samples");
      await queries.invalidateQueries({ queryKey: ["tasks"] });
    } catch (fault) {
      setError(fault);
    }
  }
  return (
    <>
      <Button kind={main ? "main" : "plain"} onClick={() => void add()}>Try a sample</Button>
      {error ? <Trouble error={error} /> : null}
    </>
  );
}
