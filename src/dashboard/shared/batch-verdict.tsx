import type { Batch } from "../../contract/batches/batch.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { Status, ToneSign } from "./status.tsx";

interface BatchVerdictProps extends Pick<Batch, "status" | "gatesFailed"> {
  /** Whether the number of jobs stands beside it. */
  readonly isShort?: boolean;
}

/** How a batch stands: one whose jobs fail gates is no good news. */
export function BatchVerdict({ status, gatesFailed, isShort = false }: BatchVerdictProps) {
  if (status !== "Completed" || gatesFailed === 0) return <Status status={status} />;
  const jobs = `${formatCount(gatesFailed, "job fails", "jobs fail")} a gate`;
  return <ToneSign tone="bad" icon="bad" words={`Completed, ${isShort ? "fails gates" : jobs}`} />;
}
