import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useMemo } from "preact/hooks";
import type { Job } from "../../contract/jobs/job.ts";
import { service } from "../session/service.ts";
import { type FieldMessages, refusedFields } from "../shared/field-errors.ts";
import { MaybeError } from "../shared/notice.tsx";
import { GateFields } from "./gate-fields.tsx";
import { createJobForm, type JobForm } from "./job-form.ts";
import { ModelField } from "./model-field.tsx";
import { readJobForm } from "./read-job-form.ts";
import { KindField, RecipeFields } from "./recipe-fields.tsx";
import { RecipeText } from "./recipe-text.tsx";
import { SizePrediction } from "./size-prediction.tsx";

/** The form of a job: a model, a target, a recipe and limits. */
export function JobFormCard({ from }: { readonly from?: Job }) {
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
