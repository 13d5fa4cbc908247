/** All pictures of a job. A chunk of its own; what is drawn, and where, is the service's. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

import { api, type Schemas, unwrap } from "@/api/client";
import { buttonLook } from "@/parts/Button";
import { Picture } from "@/parts/charts/Picture";
import { Trouble, Waiting } from "@/parts/Notice";

/** The service lays pictures out for a width; letters then have their own size on a phone, too. */
const [SLIM, WIDE] = [340, 560];
const FILE_WIDTH = 720;
const OPEN_MS = 10_000;

const narrow = window.matchMedia("(max-width: 639px)");
const subscribe = (changed: () => void) => {
  narrow.addEventListener("change", changed);
  return () => narrow.removeEventListener("change", changed);
};

export default function Pictures({ job, open }: { job: number; open: boolean }) {
  const width = useSyncExternalStore(subscribe, () => (narrow.matches ? SLIM : WIDE));
  const charts = useQuery({
    queryKey: ["job", job, "charts", width],
    queryFn: () =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/charts", { params: { path: { job_id: job }, query: { width } } })),
    placeholderData: keepPreviousData,
    refetchInterval: open ? OPEN_MS : false,
  });
  if (charts.error) return <Trouble error={charts.error} retry={() => void charts.refetch()} />;
  if (!charts.data) return <Waiting rows={12} />;
  return (
    <section aria-label="Pictures">
      <div className="flex justify-end border-b px-3 py-1.5">
        <a href={`/api/v1/jobs/${job}/report.html`} download className={buttonLook()}>
          Report as HTML
        </a>
      </div>
      <div className="grid grid-cols-1 lg:grid-cols-2">
        {charts.data.items.map((chart) => (
          <Picture
            key={chart.name}
            chart={chart as Schemas["Chart"]}
            file={`/api/v1/jobs/${job}/charts/${chart.name}.svg?width=${FILE_WIDTH}`}
          />
        ))}
      </div>
    </section>
  );
}
