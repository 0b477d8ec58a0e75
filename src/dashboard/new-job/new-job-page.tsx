import { useLocation } from "preact-iso";
import { service } from "../session/service.ts";
import { jobAddress } from "../shared/addresses.ts";
import { MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { useLoaded } from "../shared/use-loaded.ts";
import { JobFormCard } from "./job-form-card.tsx";

/** Starts a job; `?from=` names one whose request the form then has. */
export function NewJobPage() {
  const { from } = useLocation().query;
  return (
    <main id="main">{from === undefined ? <NewJob /> : <ChangedJob key={from} id={from} />}</main>
  );
}

function NewJob() {
  return (
    <>
      <PageHead title="New job" />
      <JobFormCard />
    </>
  );
}

function ChangedJob({ id }: { readonly id: string }) {
  const { value: job, error, reload } = useLoaded(() => service.call("getJob", { params: { id } }));
  return (
    <>
      <PageHead title="Run again with changes" />
      <MaybeError error={error} retry={reload} />
      {job && (
        <p class="page-note soft">
          As <a href={jobAddress(id)}>{job.name}</a>; its labels and its limit of time go along.
        </p>
      )}
      {job && <JobFormCard from={job} />}
    </>
  );
}
