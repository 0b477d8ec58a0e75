import { type Signal, signal } from "@preact/signals";
import type { Job } from "../../contract/jobs/job.ts";
import { createJobFields, type JobFields } from "./read-job-form.ts";
import type { ModelUpload } from "./model-upload.ts";

/** The form of a new job. */
export interface JobForm extends JobFields {
  readonly upload: Signal<ModelUpload | undefined>;
}

export function createJobForm(from?: Job, model?: string): JobForm {
  const fields = createJobFields(from);
  if (model !== undefined) fields.source.value = model;
  return { ...fields, upload: signal<ModelUpload | undefined>(undefined) };
}
