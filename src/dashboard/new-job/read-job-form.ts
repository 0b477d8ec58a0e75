import { type Signal, signal } from "@preact/signals";
import { formatProblem } from "../../contract/format-problem.ts";
import { gateLimits } from "../../contract/jobs/gate.ts";
import { gateName, type GateName } from "../../contract/jobs/gate-table.ts";
import { type Job, type JobRequest, jobRequest } from "../../contract/jobs/job.ts";
import {
  changeScheme,
  partialRecipe,
  type PartialRecipe,
  requestedRecipe,
  type RequestedRecipe,
  schemeName,
} from "../../contract/jobs/recipe.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import { parseInput } from "../../contract/parse-input.ts";
import { modelReference } from "../../contract/models/model.ts";
import { jobTitle } from "../../report/report.ts";
import { type FieldMessages, invalidFields } from "../shared/field-errors.ts";
import { jsonValue } from "../../contract/text/json-value.ts";

export const gateNames = gateName.options;

interface PickedModel {
  readonly name: string;
  readonly source: string;
}

/** What a person has typed and chosen for a new job, besides its file. */
export interface JobFields {
  /** Address of the model, where no file was chosen. */
  readonly source: Signal<string>;
  /** The model that was last chosen by its name, which the job keeps for the same address. */
  readonly picked: Signal<PickedModel | undefined>;
  readonly kind: Signal<JobKind>;
  readonly target: Signal<string>;
  /** Empty for the target's own. */
  readonly scheme: Signal<string>;
  /** What the chosen scheme changed in the other fields. */
  readonly schemeNote: Signal<string>;
  /** The recipe's other fields as JSON; empty for the target's own. */
  readonly recipe: Signal<string>;
  readonly gates: Readonly<Record<GateName, Signal<string>>>;
  readonly messages: Signal<FieldMessages>;
  readonly from: Job | undefined;
}

/** Empty fields, or those of a job's request. */
export function createJobFields(from?: Job): JobFields {
  const { scheme = "", ...recipe } = from?.recipe ?? {};
  return {
    source: signal(from?.model.source ?? ""),
    picked: signal<PickedModel | undefined>(undefined),
    kind: signal<JobKind>(from?.kind ?? "compress"),
    target: signal(from?.target ?? ""),
    scheme: signal(scheme),
    schemeNote: signal(""),
    recipe: signal(from === undefined ? "" : JSON.stringify(recipe, undefined, 2)),
    gates: createGates(from?.gateLimits),
    messages: signal<FieldMessages>({}),
    from,
  };
}

function createGates(limits: Job["gateLimits"] = {}): JobFields["gates"] {
  const entries = gateNames.map((gate) => [gate, signal(String(limits[gate] ?? ""))]);
  return Object.fromEntries(entries) as JobFields["gates"];
}

/** Chooses a scheme. Of a job that is run again, fields that it has no place for go, and come back. */
export function chooseScheme(form: JobFields, chosen: string): void {
  const { scheme, recipe, from, schemeNote } = form;
  scheme.value = chosen;
  schemeNote.value = "";
  const typed = partialRecipe.safeParse(jsonValue.safeParse(recipe.peek()).data).data;
  const known = schemeName.safeParse(chosen).data;
  if (from === undefined || typed === undefined || known === undefined) return;
  const { granularity, calibration, auto } = from.recipe;
  const former: PartialRecipe = { granularity, calibration, auto };
  const isFormer = known === from.recipe.scheme;
  const whole = isFormer ? { ...typed, ...former } : { ...former, ...typed };
  const changed = isFormer ? whole : changeScheme(whole, known);
  recipe.value = JSON.stringify(changed, undefined, 2);
  const left = (["calibration", "auto"] as const).filter(
    (name) => whole[name] !== undefined && changed[name] === undefined,
  );
  const notes = left.map((name) => `${name} is left out`);
  if (changed.granularity !== whole.granularity) {
    notes.push(`the granularity is ${changed.granularity}`);
  }
  if (notes.length > 0) schemeNote.value = `With ${chosen}, ${notes.join(" and ")}.`;
}

/** What a job takes from the first one without being asked; not that it was a dry run. */
function listKeptFields({ from }: JobFields): Partial<JobRequest> {
  if (from === undefined) return {};
  const { name, target, model, labels, deadlineSeconds } = from;
  const isNamed = name !== jobTitle({ model: model.name, target });
  return { labels, deadlineSeconds, name: isNamed ? name : undefined };
}

interface UploadedFile {
  /** What a job names as its model. */
  readonly source: string;
  readonly file: { readonly name: string };
}

/** The form's request; undefined where the form then says what is wrong. */
export function readJobForm(form: JobFields, upload?: UploadedFile): JobRequest | undefined {
  const recipe = readRecipe(form);
  const gates = gateLimits.safeParse(listGates(form));
  const parsed = jobRequest.safeParse({
    ...listKeptFields(form),
    model: upload ? nameUpload(upload) : readModel(form),
    target: form.target.value,
    recipe: recipe.value,
    gates: gates.data,
  });
  const wrong = [parsed, gates].flatMap(({ error }) => (error ? [invalidFields(error)] : []));
  if (recipe.message !== undefined) wrong.push({ recipe: recipe.message });
  form.messages.value = Object.assign({}, ...wrong);
  return wrong.length === 0 ? parsed.data : undefined;
}

function nameUpload({ source, file }: UploadedFile) {
  return { source, name: shortModelName(file.name) };
}

function readModel({ source, from, picked }: JobFields) {
  const typed = source.value.trim();
  const { name: chosen } = picked.value?.source === typed ? picked.value : {};
  if (chosen !== undefined) return { source: typed, name: chosenName(chosen) };
  if (typed !== from?.model.source) return { source: typed };
  const { sha256, name } = from.model;
  return { source: typed, sha256, name };
}

function listGates({ gates, from }: JobFields) {
  const limited = gateNames.filter((gate) => gates[gate].value.trim() !== "");
  const limits = Object.fromEntries(limited.map((gate) => [gate, Number(gates[gate].value)]));
  const { warnGates } = from?.gateLimits ?? {};
  return limited.length === 0 ? {} : { ...limits, warnGates };
}

interface ReadRecipe {
  readonly value?: RequestedRecipe;
  readonly message?: string;
}

function readRecipe({ scheme, recipe }: JobFields): ReadRecipe {
  const text = recipe.value.trim();
  const fields = text === "" ? {} : jsonValue.safeParse(text).data;
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    return { message: 'This is not a JSON object, such as { "granularity": "channel" }' };
  }
  const chosen = scheme.value === "" ? {} : { scheme: scheme.value };
  const { data, problems } = parseInput(requestedRecipe, { ...fields, ...chosen });
  if (problems !== undefined) return { message: problems.map(formatProblem).join("; ") };
  return Object.keys(data).length === 0 ? {} : { value: data };
}

/** The name of a model that jobs have called so; a file's own where it cannot be asked for. */
function chosenName(name: string): string | undefined {
  return modelReference.shape.name.safeParse(name).data;
}

/** A file's name as a model's: `My model (2).onnx` is `My-model-2`. */
export function shortModelName(fileName: string): string | undefined {
  const words = fileName.replace(/\.onnx$/i, "").match(/[A-Za-z0-9._]+/g) ?? [];
  const name = words
    .join("-")
    .replace(/^[._-]+/, "")
    .slice(0, 100);
  return name === "" ? undefined : name;
}
