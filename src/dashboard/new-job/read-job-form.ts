import { formatProblem } from "../../contract/format-problem.ts";
import { gateLimits } from "../../contract/jobs/gate.ts";
import { type JobRequest, jobRequest } from "../../contract/jobs/job.ts";
import { parseInput } from "../../contract/parse-input.ts";
import { requestedRecipe, type RequestedRecipe } from "../../contract/jobs/recipe.ts";
import { invalidFields } from "../shared/field-errors.ts";
import { parseText } from "../shared/parse-text.ts";
import { gateNames, type JobFields, listKeptFields } from "./job-fields.ts";

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

function readModel({ source, from }: JobFields) {
  const typed = source.value.trim();
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
  const fields = text === "" ? {} : parseText(text);
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    return { message: 'This is no JSON object, such as { "granularity": "channel" }' };
  }
  const chosen = scheme.value === "" ? {} : { scheme: scheme.value };
  const { data, problems } = parseInput(requestedRecipe, { ...fields, ...chosen });
  if (problems !== undefined) return { message: problems.map(formatProblem).join("; ") };
  return Object.keys(data).length === 0 ? {} : { value: data };
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
