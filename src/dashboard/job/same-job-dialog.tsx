import { type Signal, useSignal } from "@preact/signals";
import { jobAsCurl, jobAsResource, jobAsStep } from "./same-job.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { interfaceUrl } from "../session/service.ts";
import { Button, Command } from "../shared/button.tsx";
import { Dialog } from "../shared/dialog.tsx";

const forms: Readonly<Record<string, (job: Job) => string>> = {
  curl: (job) => jobAsCurl(job, interfaceUrl),
  "YAML for kubectl": jobAsResource,
  "Workflow step": (job) => jobAsStep(job, location.origin),
};

/** The same job in the forms in which others start it. */
export function SameJobDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const form = useSignal("curl");
  return (
    <Dialog title="Copy this job as" onClose={onClose}>
      <JobFormChoice form={form} />
      <Command text={forms[form.value]?.(job) ?? ""} label={form.value} />
      <div class="dialog-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function JobFormChoice({ form }: { form: Signal<string> }) {
  return (
    <div class="choices" role="group" aria-label="Format">
      {Object.keys(forms).map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={form.value === name}
          onClick={() => (form.value = name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
