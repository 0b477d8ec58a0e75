import { useSignal } from "@preact/signals";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { findWeightFiles, sayWeightFiles } from "../../contract/jobs/weight-files.ts";
import { service } from "../session/service.ts";
import { Button, Command } from "../shared/button.tsx";
import { Dialog } from "../shared/dialog.tsx";
import { SelectField } from "../shared/field.tsx";
import { findDownload } from "../shared/find-download.ts";
import { formatExactTime } from "../shared/format.ts";
import { MaybeError } from "../shared/notice.tsx";

const hourSeconds = 3600;
const validities: Readonly<Record<string, number>> = {
  "1 hour": hourSeconds,
  "1 day": 24 * hourSeconds,
  "7 days": 168 * hourSeconds,
};

/** Gives a colleague the page, or one of the job's files without an account. */
export function ShareDialog({ job, onClose }: { readonly job: JobDetail; onClose: () => void }) {
  return (
    <Dialog title="Share this result" onClose={onClose}>
      <p class="soft">For people who can sign in here, the address of this page:</p>
      <Command text={`${location.origin}/jobs/${job.id}`} label="Address of this page" />
      <FileLink job={job} />
      <div class="dialog-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

interface MadeLink {
  /** The choices that it was made for. */
  readonly of: string;
  readonly url: string;
  readonly expiresAt: string;
}

function FileLink({ job }: { readonly job: JobDetail }) {
  const file = useSignal(findDownload(job.artifacts) ?? job.artifacts[0]?.name ?? "");
  const validity = useSignal("1 day");
  const link = useSignal<MadeLink | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const needed = findWeightFiles(job.artifacts, file.value);
  const of = `${file.value} ${validity.value}`;
  const make = () => {
    failure.value = undefined;
    const params = { id: job.id, name: file.value };
    const body = { expiresInSeconds: validities[validity.value], withSummary: true };
    return service.call("linkArtifact", { params, body }).then(
      (made) => (link.value = { ...made, of }),
      (error: unknown) => (failure.value = error),
    );
  };
  return (
    <>
      <p class="soft">
        For anyone who has it, without signing in: a page with the model’s name, the target, the
        recipe in short, figures and gates, and one file to download. It expires.
      </p>
      <MaybeError error={failure.value} />
      <div class="columns">
        <SelectField
          label="File"
          value={file.value}
          options={job.artifacts.map(({ name }) => [name, name])}
          onChange={(name) => (file.value = name)}
        />
        <SelectField
          label="Valid for"
          value={validity.value}
          options={Object.keys(validities).map((name) => [name, name])}
          onChange={(name) => (validity.value = name)}
        />
      </div>
      {needed && (
        <p class="warn">
          {sayWeightFiles(file.value, needed)}: share{" "}
          {needed.archive === null ? "each of them too." : <code>{needed.archive}</code>}
        </p>
      )}
      <Button onClick={make}>Create a link</Button>
      {link.value?.of === of && (
        <div role="status">
          <Command
            text={new URL(link.value.url, location.origin).href}
            label="Link to the result"
          />
          <p class="soft">Valid until {formatExactTime(Date.parse(link.value.expiresAt))}.</p>
        </div>
      )}
    </>
  );
}
