import { type Signal, signal } from "@preact/signals";
import type { Job } from "../../contract/jobs/job.ts";
import { createJobFields, type JobFields } from "./read-job-form.ts";
import type { ModelUpload } from "./model-upload.ts";

/** The form of a new job. */
export interface JobForm extends JobFields {
  readonly upload: Signal<ModelUpload | undefined>;
}

/** A form for a model that the address names. */
export interface NamedSource {
  readonly source: string;
  readonly name: string | undefined;
}

export function createJobForm(from?: Job, model?: NamedSource): JobForm {
  const fields = createJobFields(from);
  if (model !== undefined) {
    fields.source.value = model.source;
    if (model.name !== undefined) fields.picked.value = { name: model.name, source: model.source };
  }
  return { ...fields, upload: signal<ModelUpload | undefined>(undefined) };
}
