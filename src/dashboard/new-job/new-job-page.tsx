import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import { createJobForm, type JobForm, type NamedSource } from "./job-form.ts";
import { GateFields } from "./gate-fields.tsx";
import { ModelField, sendModel } from "./model-field.tsx";
import { readJobForm } from "./read-job-form.ts";
import { describePlan, planJob, startRoutes } from "./plan-job.ts";
import { AdvancedFields, RecipeFields } from "./recipe-fields.tsx";
import { makeSampleModel } from "./sample-model.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { service } from "../session/service.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { type FieldMessages, refusedFields } from "../shared/field-errors.ts";
import { useLeaveQuestion } from "../shared/leave-question.ts";
import { MissingPage } from "../shared/missing-page.tsx";
import { MaybeError, sayError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { type HeadersOf, useStart } from "../shared/use-start.ts";
import { useLive } from "../live/use-live.ts";

/**
 * Starts a job; `?from=` names one whose request the form then has, `exclude=` a weight that it is
 * to leave as it is, `model=` what it compresses, and `sample` that this is the sample model.
 */
export function NewJobPage() {
  const { from, exclude, model: source, name, sample } = useLocation().query;
  const model = source === undefined ? undefined : { source, name };
  return (
    <main id="main">
      {from === undefined ? (
        <NewJob model={model} isSample={sample !== undefined} />
      ) : (
        <ChangedJob key={from} id={from} exclude={exclude} />
      )}
    </main>
  );
}

interface NewJobProps {
  readonly model: NamedSource | undefined;
  readonly isSample: boolean;
}

function NewJob({ model, isSample }: NewJobProps) {
  return (
    <>
      <PageHead title="New job">
        <a class="button" href="/new-batch">
          New batch
        </a>
      </PageHead>
      <JobFormCard model={model} isSample={isSample} />
    </>
  );
}

interface ChangedJobProps {
  readonly id: string;
  readonly exclude: string | undefined;
}

function ChangedJob({ id, exclude }: ChangedJobProps) {
  const { value: job, error, reload } = useLive(() => service.call("getJob", { params: { id } }));
  return (
    <>
      <PageHead title="Run again with changes" />
      <MissingPage error={error} noun="job" list="/jobs" retry={reload} />
      {job && (
        <p class="page-note soft">
          Based on <a href={jobAddress(id)}>{job.name}</a>, with all that it asked for.
          {job.dryRun && " That was a dry run, this one writes a result."}
          {exclude !== undefined && (
            <>
              {" "}
              Changed: <code>{exclude}</code> is left as it is.
            </>
          )}
        </p>
      )}
      {job && <JobFormCard from={leaveOut(job, exclude)} />}
    </>
  );
}

/** The job with a weight, if one is named, that its recipe leaves as it is. */
function leaveOut(job: Job, weight: string | undefined): Job {
  if (weight === undefined) return job;
  const exclude = [...new Set([...job.recipe.exclude, weight])];
  return { ...job, recipe: { ...job.recipe, exclude } };
}

/** The form of a job: a model, a target, a recipe and limits. */
function JobFormCard({ from, model, isSample }: Partial<NewJobProps> & { readonly from?: Job }) {
  const form = useMemo(() => createJobForm(from, model), []);
  const element = useLeaveQuestion();
  const failure = useSignal<unknown>(undefined);
  const { start } = useStart();
  const { route } = useLocation();
  useEffect(() => {
    if (isSample) sendModel(form, makeSampleModel());
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    failure.value = undefined;
    try {
      const started = await start((headersOf) => startFormJob(form, headersOf));
      if (started !== undefined) route(`/jobs/${started.id}`);
    } catch (error) {
      form.messages.value = refusedFields(error) satisfies FieldMessages;
      failure.value = error;
    }
  };
  return (
    <>
      <MaybeError error={failure.value} />
      <form ref={element} class="card form" onSubmit={(event) => void submit(event)} noValidate>
        <ModelField form={form} />
        <RecipeFields form={form} />
        <AdvancedFields form={form} />
        <GateFields form={form} />
        <FormEnd form={form} />
      </form>
    </>
  );
}

function FormEnd({ form }: { readonly form: JobForm }) {
  const step = form.upload.value?.step.value;
  const isSending = step !== undefined && step !== "done";
  return (
    <div class="form-end">
      <SizePrediction form={form} isReady={!isSending} />
      <span class="grow" />
      <button class="main" disabled={isSending}>
        {isSending ? "Waiting for the model…" : "Start job"}
      </button>
    </div>
  );
}

async function startFormJob(
  form: JobForm,
  headersOf: HeadersOf,
): Promise<{ readonly id: string } | undefined> {
  const body = readJobForm(form, form.upload.value);
  if (body === undefined) return undefined;
  return service.call(startRoutes[form.kind.value], { body, headers: headersOf(body) });
}

/** Says how large the result will be, by a dry run that writes nothing, until the form changes. */
function SizePrediction({ form, isReady }: { form: JobForm; isReady: boolean }) {
  const said = useSignal({ of: "", text: "" });
  const { kind, source, target, scheme, recipe, upload } = form;
  const of = JSON.stringify([
    upload.value?.file.name,
    ...[kind, source, target, scheme, recipe].map(({ value }) => value),
  ]);
  const predict = async () => {
    const body = readJobForm(form, upload.value);
    if (body === undefined) return;
    said.value = { of, text: "Planning…" };
    const text = await planJob(kind.value, body).then(describePlan, sayError);
    if (said.value.of === of) said.value = { of, text };
  };
  return (
    <>
      <button type="button" disabled={!isReady} onClick={() => void predict()}>
        Predict size
      </button>
      <span class="soft" role="status">
        {said.value.of === of && said.value.text}
      </span>
    </>
  );
}
