import { useSignal } from "@preact/signals";
import { ErrorBoundary, useLocation } from "preact-iso";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { findWeightFiles, sayWeightFiles } from "../../contract/jobs/weight-files.ts";
import { EndNoticeButton } from "../live/end-notice-button.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import { RemovalDialog } from "../shared/dialog.tsx";
import { findDownload } from "../shared/find-download.ts";
import { loadDialog } from "../shared/load-later.tsx";
import { Menu } from "../shared/menu.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useStart } from "../shared/use-start.ts";
import { isShippable } from "../shared/verdict.ts";

const SameJobDialog = loadDialog(async () => (await import("./same-job-dialog.tsx")).SameJobDialog);
const ShareDialog = loadDialog(async () => (await import("./share-dialog.tsx")).ShareDialog);

type OpenDialog = "copy" | "share" | "delete";

/** What can be done with a job: the download comes first where no gate says no. */
export function JobActions({ job }: { readonly job: JobDetail }) {
  const failure = useSignal<unknown>(undefined);
  const dialog = useSignal<OpenDialog | undefined>(undefined);
  const file = findDownload(job.artifacts);
  const isGood = isShippable(job);
  const download = file !== undefined && <DownloadLink job={job} file={file} isMain={isGood} />;
  const open = (name: OpenDialog) => () => (dialog.value = name);
  return (
    <div class="actions">
      <MaybeError error={failure.value} />
      {isGood && download}
      <StartActions job={job} onError={(error) => (failure.value = error)} />
      {!isGood && download}
      <Menu look="menu" summary={<span class="button">More</span>}>
        <div class="menu-list">
          <Button look="quiet" onClick={open("copy")}>
            Copy as
          </Button>
          {file && (
            <Button look="quiet" onClick={open("share")}>
              Share
            </Button>
          )}
          {isTerminal(job.status) && job.batchId === null && mayDo("deleteWork") && (
            <Button look="quiet danger" onClick={open("delete")}>
              Delete
            </Button>
          )}
        </div>
      </Menu>
      <JobDialog job={job} name={dialog.value} onClose={() => (dialog.value = undefined)} />
    </div>
  );
}

interface DownloadLinkProps {
  readonly job: JobDetail;
  readonly file: string;
  readonly isMain: boolean;
}

function DownloadLink({ job: { id, artifacts }, file, isMain }: DownloadLinkProps) {
  const needed = findWeightFiles(artifacts, file);
  return (
    <a
      class={isMain ? "button main" : "button"}
      href={artifactAddress(id, file)}
      title={needed === null ? undefined : sayWeightFiles(file, needed)}
      download
    >
      <Icon name="down" />
      Download model{needed !== null && `, 1 of ${needed.files + 1} files`}
    </a>
  );
}

interface StartActionsProps {
  readonly job: JobDetail;
  readonly onError: (error: unknown) => void;
}

function StartActions({ job, onError }: StartActionsProps) {
  const { route } = useLocation();
  const { start } = useStart();
  const params = { id: job.id };
  const retry = () =>
    start(async (headersOf) => {
      const { id } = await service.call("retryJob", { params, headers: headersOf(params) });
      route(`/jobs/${id}`);
    }).catch(onError);
  const cancel = () => service.call("cancelJob", { params }).catch(onError);
  const isOver = isTerminal(job.status);
  const isMain = isOver && !isShippable(job);
  return (
    <>
      {mayDo("startWork") && (
        <a class={isMain ? "button main" : "button"} href={`/new?from=${job.id}`}>
          Run with changes
        </a>
      )}
      {isOver && mayDo("retryWork") && (
        <Button onClick={retry}>
          <Icon name="again" />
          Run again
        </Button>
      )}
      {!isOver && <EndNoticeButton id={job.id} />}
      {!isOver && mayDo("cancelWork") && (
        <Button look="danger" onClick={cancel}>
          Cancel job
        </Button>
      )}
    </>
  );
}

interface JobDialogProps {
  readonly job: JobDetail;
  readonly name: OpenDialog | undefined;
  readonly onClose: () => void;
}

function JobDialog({ job, name, onClose }: JobDialogProps) {
  return (
    <ErrorBoundary>
      {name === "copy" && <SameJobDialog job={job} onClose={onClose} />}
      {name === "share" && <ShareDialog job={job} onClose={onClose} />}
      {name === "delete" && <DeleteDialog job={job} onClose={onClose} />}
    </ErrorBoundary>
  );
}

function DeleteDialog({ job, onClose }: { readonly job: JobDetail; readonly onClose: () => void }) {
  const { route } = useLocation();
  const remove = async () => {
    await service.callEmpty("deleteJob", { params: { id: job.id } });
    route("/jobs");
  };
  return (
    <RemovalDialog
      title={`Delete ${job.name}`}
      keep="Keep the job"
      remove="Delete the job"
      onKeep={onClose}
      onRemove={remove}
    >
      <p>
        Its result, log, figures and the baselines that it recorded are deleted for good. Links to
        its files end.
      </p>
    </RemovalDialog>
  );
}
