import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useMemo } from "preact/hooks";
import { createJobForm, type JobForm } from "./job-form.ts";
import { ModelField } from "./model-field.tsx";
import {
  gateNames,
  type JobFields,
  type OfferedGate,
  offeredGates,
  readJobForm,
} from "./read-job-form.ts";
import { KindField, RecipeFields } from "./recipe-fields.tsx";
import type { Job } from "../../contract/jobs/job.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { service } from "../session/service.ts";
import { type FieldMessages, refusedFields } from "../shared/field-errors.ts";
import { Field, TextField } from "../shared/field.tsx";
import { MaybeError, sayError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { useLive } from "../live/use-live.ts";

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
  const { value: job, error, reload } = useLive(() => service.call("getJob", { params: { id } }));
  return (
    <>
      <PageHead title="Run again with changes" />
      <MaybeError error={error} retry={reload} />
      {job && (
        <p class="page-note soft">
          Based on <a href={jobAddress(id)}>{job.name}</a>, with its labels and deadline.
        </p>
      )}
      {job && <JobFormCard from={job} />}
    </>
  );
}

/** The form of a job: a model, a target, a recipe and limits. */
function JobFormCard({ from }: { readonly from?: Job }) {
  const form = useMemo(() => createJobForm(from), []);
  const failure = useSignal<unknown>(undefined);
  const { route } = useLocation();
  const submit = async (event: Event) => {
    event.preventDefault();
    failure.value = undefined;
    try {
      const started = await startFormJob(form);
      if (started !== undefined) route(`/jobs/${started.id}`);
    } catch (error) {
      form.messages.value = refusedFields(error) satisfies FieldMessages;
      failure.value = error;
    }
  };
  return (
    <>
      <MaybeError error={failure.value} />
      <form class="card form" onSubmit={(event) => void submit(event)} noValidate>
        <ModelField form={form} />
        <KindField form={form} />
        <RecipeFields form={form} />
        <RecipeText form={form} />
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

async function startFormJob(form: JobForm): Promise<{ readonly id: string } | undefined> {
  const body = readJobForm(form, form.upload.value);
  if (body === undefined) return undefined;
  const headers = { "idempotency-key": crypto.randomUUID() };
  const name = form.kind.value === "compress" ? "startCompression" : "startQuantization";
  return service.call(name, { body, headers });
}

/** Limits on what is measured; empty ones set none. */
function GateFields({ form }: { readonly form: JobFields }) {
  return (
    <fieldset class="labelled">
      <legend>Gates</legend>
      <div class="columns">
        {gateNames.map((gate) => (
          <GateField key={gate} form={form} gate={gate} />
        ))}
      </div>
    </fieldset>
  );
}

function GateField({ form, gate }: { readonly form: JobFields; readonly gate: OfferedGate }) {
  return (
    <TextField
      label={offeredGates[gate]}
      error={form.messages.value[gate] && "Enter a number"}
      text={form.gates[gate]}
      placeholder="no limit"
      inputMode="decimal"
    />
  );
}

const hint =
  "JSON. Fields that you leave out come from the target; the page “Targets” lists its recipes.";
const mostRows = 24;

/** The recipe's fields besides the scheme, for those who change them. */
function RecipeText({ form: { recipe, messages } }: { readonly form: JobFields }) {
  const error = messages.value["recipe"];
  const isOpen = recipe.peek() !== "" || error !== undefined;
  return (
    <details class="more-fields" open={isOpen}>
      <summary>More recipe fields</summary>
      <Field label="Other recipe fields" hint={hint} error={error}>
        {({ id, describedBy }) => (
          <textarea
            id={id}
            class="mono"
            rows={Math.min(mostRows, recipe.peek().split("\n").length + 2)}
            spellcheck={false}
            placeholder={'{ "granularity": "channel" }'}
            aria-describedby={describedBy}
            aria-invalid={error !== undefined}
            value={recipe.value}
            onInput={({ currentTarget }) => (recipe.value = currentTarget.value)}
          />
        )}
      </Field>
    </details>
  );
}

/** Says how large the result will be, by a dry run that writes nothing. */
function SizePrediction({ form, isReady }: { form: JobForm; isReady: boolean }) {
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
        Predict size
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
