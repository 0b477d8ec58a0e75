import { useSignal } from "@preact/signals";
import { jobAsCurl, jobAsResource, jobAsStep } from "./same-job.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { interfaceUrl } from "../session/service.ts";
import { Button, Command } from "../shared/button.tsx";
import { Choices } from "../shared/choices.tsx";
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
      <Choices
        label="Format"
        names={Object.keys(forms)}
        chosen={form.value}
        onChoose={(name) => (form.value = name)}
      />
      <Command text={forms[form.value]?.(job) ?? ""} label={form.value} />
      <div class="dialog-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
