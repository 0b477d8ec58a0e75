import "./new-batch.css";
import { type Signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { type ChosenModel, countJobs, planBatches, recipeChoices } from "./plan-batches.ts";
import type { Target } from "../../contract/jobs/target.ts";
import { maxBatchJobs } from "../../contract/batches/batch.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { useLive } from "../live/use-live.ts";
import { SizePredictions } from "./size-predictions.tsx";
import { ModelPicker, describeModel } from "../new-job/model-picker.tsx";
import { ModelUpload } from "../new-job/model-upload.ts";
import { shortModelName } from "../new-job/read-job-form.ts";
import { service } from "../session/service.ts";
import { Button, Icon } from "../shared/button.tsx";
import { TextField } from "../shared/field.tsx";
import { useLeaveQuestion } from "../shared/leave-question.ts";
import { DropZone } from "../shared/drop-zone.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { type HeadersOf, useStart } from "../shared/use-start.ts";

/** Starts several models for several targets by several recipes; `?model=` names the first. */
export function NewBatchPage() {
  const { model, name } = useLocation().query;
  const first = model === undefined ? [] : [{ source: model, name: name ?? "" }];
  return (
    <main id="main">
      <PageHead title="New batch" />
      <BatchForm models={first} />
    </main>
  );
}

interface BatchChoices {
  readonly models: Signal<readonly ChosenModel[]>;
  readonly targets: Signal<ReadonlySet<string>>;
  readonly recipes: Signal<ReadonlySet<string>>;
  readonly name: Signal<string>;
  readonly sizeLimit: Signal<string>;
  readonly sqnrLimit: Signal<string>;
}

function BatchForm({ models }: { readonly models: readonly ChosenModel[] }) {
  const form: BatchChoices = {
    models: useSignal(models),
    targets: useSignal<ReadonlySet<string>>(new Set()),
    recipes: useSignal<ReadonlySet<string>>(new Set(["target"])),
    name: useSignal(""),
    sizeLimit: useSignal(""),
    sqnrLimit: useSignal(""),
  };
  const element = useLeaveQuestion();
  const failure = useSignal<unknown>(undefined);
  const { start, isStarting } = useStart();
  const { route } = useLocation();
  const submit = async (event: Event) => {
    event.preventDefault();
    failure.value = undefined;
    try {
      const address = await start((headersOf) => startBatches(form, headersOf));
      if (address !== undefined) route(address);
    } catch (error) {
      failure.value = error;
    }
  };
  return (
    <>
      <MaybeError error={failure.value} />
      <form ref={element} class="card form" onSubmit={(event) => void submit(event)} noValidate>
        <ModelList models={form.models} />
        <TargetChoice chosen={form.targets} />
        <RecipeChoice chosen={form.recipes} />
        <GateFields form={form} />
        <TextField
          label="Name"
          hint="Leave it empty for a name made of the models and targets."
          text={form.name}
        />
        <SizePredictions plan={readChoices(form)} />
        <BatchEnd form={form} isStarting={isStarting.value} />
      </form>
    </>
  );
}

function ModelList({ models }: { readonly models: BatchChoices["models"] }) {
  const add = (model: ChosenModel) => {
    if (models.value.some(({ source }) => source === model.source)) return;
    models.value = [...models.value, model];
  };
  const remove = (source: string) => {
    models.value = models.value.filter((model) => model.source !== source);
  };
  return (
    <fieldset class="labelled">
      <legend>Models</legend>
      <ul class="chosen">
        {models.value.map((model) => (
          <li key={model.source}>
            <span class="cut grow">{describeModel(model)}</span>
            <Button
              look="quiet"
              label={`Remove ${model.name}`}
              onClick={() => remove(model.source)}
            >
              <Icon name="close" />
            </Button>
          </li>
        ))}
      </ul>
      <UploadList onModel={add} />
      <ModelPicker label="or a model that is known here" value="" onPick={add} />
    </fieldset>
  );
}

/** Files that are sent one after the other, and are models of the batch once they are there. */
function UploadList({ onModel }: { readonly onModel: (model: ChosenModel) => void }) {
  const uploads = useSignal<readonly ModelUpload[]>([]);
  const take = async (files: readonly File[]) => {
    for (const file of files) {
      const upload = new ModelUpload(file);
      uploads.value = [...uploads.value, upload];
      await upload.start();
      if (upload.step.value !== "done") continue;
      const name = shortModelName(file.name) ?? "unnamed upload";
      onModel({ name, source: upload.source });
      uploads.value = uploads.value.filter((other) => other !== upload);
    }
  };
  return (
    <>
      <DropZone title="Drop ONNX files here" multiple onFiles={(files) => void take(files)} />
      {uploads.value.map((upload) => (
        <div key={upload.file.name} class="soft" role="status">
          {upload.file.name}: {upload.step.value}
          <MaybeError error={upload.error.value} />
        </div>
      ))}
    </>
  );
}

async function loadTargets(): Promise<readonly Target[]> {
  return (await service.call("listTargets", {})).targets;
}

function TargetChoice({ chosen }: { readonly chosen: BatchChoices["targets"] }) {
  const { value: targets = [], error, reload } = useLive(loadTargets);
  return (
    <fieldset class="labelled">
      <legend>Targets</legend>
      <MaybeError error={error} retry={reload} />
      {targets.map(({ name, description }) => (
        <Tick key={name} name={name} hint={description} chosen={chosen} />
      ))}
    </fieldset>
  );
}

function RecipeChoice({ chosen }: { readonly chosen: BatchChoices["recipes"] }) {
  return (
    <fieldset class="labelled">
      <legend>Recipes</legend>
      {Object.entries(recipeChoices).map(([name, { hint }]) => (
        <Tick key={name} name={name} hint={hint} chosen={chosen} />
      ))}
    </fieldset>
  );
}

interface TickProps {
  readonly name: string;
  readonly hint: string;
  readonly chosen: Signal<ReadonlySet<string>>;
}

function Tick({ name, hint, chosen }: TickProps) {
  const toggle = () => {
    const others = [...chosen.value].filter((each) => each !== name);
    chosen.value = new Set(chosen.value.has(name) ? others : [...others, name]);
  };
  return (
    <label class="choice">
      <input type="checkbox" checked={chosen.value.has(name)} onChange={toggle} />
      <code>{name}</code>
      <span class="soft">{hint}</span>
    </label>
  );
}

function GateFields({ form }: { readonly form: BatchChoices }) {
  return (
    <fieldset class="labelled">
      <legend>Gates</legend>
      <div class="columns">
        <TextField
          label="Maximum size, relative to the original"
          hint="0.5 allows half of the original's bytes."
          text={form.sizeLimit}
          placeholder="no limit"
          inputMode="decimal"
        />
        <TextField
          label="Minimum SQNR, dB"
          hint="How far the outputs are above their error; 20 dB is an error of 10 %."
          text={form.sqnrLimit}
          placeholder="no limit"
          inputMode="decimal"
        />
      </div>
    </fieldset>
  );
}

function BatchEnd({ form, isStarting }: { readonly form: BatchChoices; isStarting: boolean }) {
  const jobs = countJobs(readChoices(form));
  const { models, targets, recipes } = form;
  return (
    <div class="form-end">
      <span class={jobs > maxBatchJobs ? "bad" : "soft"} role="status">
        {formatCount(models.value.length, "model")} × {formatCount(targets.value.size, "target")} ×{" "}
        {formatCount(recipes.value.size, "recipe")} = <b>{formatCount(jobs, "job")}</b>
        {jobs > maxBatchJobs && `, at most ${maxBatchJobs}`}
      </span>
      <span class="grow" />
      <button class="main" disabled={isStarting || jobs === 0 || jobs > maxBatchJobs}>
        {isStarting ? "Starting…" : `Start ${formatCount(jobs, "job")}`}
      </button>
    </div>
  );
}

function readChoices({ models, targets, recipes, name, sizeLimit, sqnrLimit }: BatchChoices) {
  return {
    models: models.value,
    targets: [...targets.value],
    recipes: [...recipes.value],
    name: name.value.trim(),
    maxSizeRatio: sizeLimit.value.trim(),
    minSqnrDb: sqnrLimit.value.trim(),
  };
}

/** Starts a batch for each recipe. @returns where they are shown */
async function startBatches(form: BatchChoices, headersOf: HeadersOf): Promise<string> {
  const ids: string[] = [];
  for (const body of planBatches(readChoices(form))) {
    ids.push((await service.call("submitBatch", { body, headers: headersOf(body) })).id);
  }
  const [first] = ids;
  if (ids.length === 1) return `/batches/${first}`;
  return `/compare?${new URLSearchParams(ids.map((id) => ["batch", id]))}`;
}
