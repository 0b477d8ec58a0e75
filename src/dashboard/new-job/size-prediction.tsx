import { useSignal } from "@preact/signals";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { service } from "../session/service.ts";
import { sayError } from "../shared/notice.tsx";
import type { JobForm } from "./job-form.ts";
import { readJobForm } from "./read-job-form.ts";

interface SizePredictionProps {
  readonly form: JobForm;
  readonly isReady: boolean;
}

/** Says how large the result will be, by a dry run that writes nothing. */
export function SizePrediction({ form, isReady }: SizePredictionProps) {
  const text = useSignal("");
  const predict = async () => {
    const body = readJobForm(form, form.upload.value);
    if (body === undefined) return;
    text.value = "Planning…";
    const headers = { prefer: "wait=60" };
    const request = { body: { ...body, dryRun: true }, headers };
    text.value = await service.call("startQuantization", request).then(describeSize, sayError);
  };
  return (
    <>
      <button type="button" disabled={!isReady} onClick={() => void predict()}>
        Predict the size
      </button>
      <span class="soft" role="status">
        {text.value}
      </span>
    </>
  );
}

function describeSize({ telemetry: { size }, error, statusMessage }: Job): string {
  if (!size) return error?.message ?? statusMessage;
  const percent = Math.round(100 * size.ratio);
  return `${formatBytes(size.resultBytes)}, ${percent} % of ${formatBytes(size.originalBytes)}`;
}
