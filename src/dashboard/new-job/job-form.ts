import { type Signal, signal } from "@preact/signals";
import { gateLimits } from "../../contract/gate.ts";
import { type JobRequest, jobRequest } from "../../contract/job.ts";
import type { JobKind } from "../../contract/status.ts";
import { type FieldMessages, invalidFields } from "../shared/field-errors.ts";
import type { ModelUpload } from "./model-upload.ts";

/** Gates that the form offers, with their labels. */
export const offeredGates = {
  maxSizeRatio: "Largest size, of the original's",
  minSqnrDb: "Least SQNR, dB",
  maxLatencyRatio: "Largest latency, of the original's",
} as const;
export type OfferedGate = keyof typeof offeredGates;

/** What a person has typed and chosen for a new job. */
export interface JobForm {
  readonly upload: Signal<ModelUpload | undefined>;
  /** Address of the model, where no file was chosen. */
  readonly source: Signal<string>;
  readonly kind: Signal<JobKind>;
  readonly target: Signal<string>;
  /** Empty for the target's own. */
  readonly scheme: Signal<string>;
  readonly gates: Readonly<Record<OfferedGate, Signal<string>>>;
  readonly messages: Signal<FieldMessages>;
}

export function createJobForm(): JobForm {
  return {
    upload: signal<ModelUpload | undefined>(undefined),
    source: signal(""),
    kind: signal<JobKind>("compress"),
    target: signal(""),
    scheme: signal(""),
    gates: { maxSizeRatio: signal(""), minSqnrDb: signal(""), maxLatencyRatio: signal("") },
    messages: signal<FieldMessages>({}),
  };
}

/** The form's request; undefined where the form then says what is wrong. */
export function readJobForm(form: JobForm): JobRequest | undefined {
  const { upload, source, target, scheme, gates, messages } = form;
  const limits = Object.entries(gates).filter(([, typed]) => typed.value.trim() !== "");
  const file = upload.value;
  const parsedGates = gateLimits.safeParse(
    Object.fromEntries(limits.map(([gate, typed]) => [gate, Number(typed.value)])),
  );
  const parsed = jobRequest.safeParse({
    model: file
      ? { source: file.source, name: shortModelName(file.file.name) }
      : { source: source.value.trim() },
    target: target.value,
    recipe: scheme.value === "" ? undefined : { scheme: scheme.value },
    gates: parsedGates.data,
  });
  const wrong = [parsed, parsedGates].flatMap(({ error }) => (error ? [invalidFields(error)] : []));
  messages.value = Object.assign({}, ...wrong);
  return wrong.length === 0 ? parsed.data : undefined;
}

/** A file's name as a model's: `My model (2).onnx` is `My-model-2`. */
function shortModelName(fileName: string): string | undefined {
  const words = fileName.replace(/\.onnx$/i, "").match(/[A-Za-z0-9._]+/g) ?? [];
  const name = words
    .join("-")
    .replace(/^[._-]+/, "")
    .slice(0, 100);
  return name === "" ? undefined : name;
}
