/** Jobs and configurations side by side, or two trials side by side: what changed, how sure that is, and where they part. */

import { useFilters } from "@/parts/Filters";
import { useTitle } from "@/parts/title";
import { CompareJobs } from "./CompareJobs";
import { CompareTrials } from "./CompareTrials";

export default function Compare() {
  useTitle("Compare");
  const [filters] = useFilters();
  if (filters.left)
    return <CompareTrials left={Number(filters.left)} right={filters.right ? Number(filters.right) : undefined} />;
  return <CompareJobs jobs={(filters.jobs ?? "").split(",").filter(Boolean).map(Number)} />;
}
