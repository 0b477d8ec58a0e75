import "./new-batch.css";
import { type Signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { type ChosenModel, countJobs, planBatches, recipeChoices } from "./plan-batches.ts";
import { type BatchRequest, maxBatchJobs } from "../../contract/batches/batch.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { useTargets } from "../live/use-targets.ts";
import { SizePredictions } from "./size-predictions.tsx";
import { GateField } from "../new-job/gate-fields.tsx";
import { UploadProgress } from "../new-job/model-field.tsx";
import { ModelPicker, describeModel } from "../new-job/model-picker.tsx";
import { ModelUpload } from "../new-job/model-upload.ts";
import { shortModelName } from "../new-job/read-job-form.ts";
import { service } from "../session/service.ts";
import { startedAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import type { FieldMessages } from "../shared/field-errors.ts";
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
  /** Files that are not models of the batch yet. */
  readonly uploads: Signal<readonly ModelUpload[]>;
  readonly targets: Signal<ReadonlySet<string>>;
  readonly recipes: Signal<ReadonlySet<string>>;
  readonly name: Signal<string>;
  readonly sizeLimit: Signal<string>;
  readonly sqnrLimit: Signal<string>;
  readonly messages: Signal<FieldMessages>;
}

function BatchForm({ models }: { readonly models: readonly ChosenModel[] }) {
  const form: BatchChoices = {
    models: useSignal(models),
    uploads: useSignal<readonly ModelUpload[]>([]),
    targets: useSignal<ReadonlySet<string>>(new Set()),
    recipes: useSignal<ReadonlySet<string>>(new Set(["target"])),
    name: useSignal(""),
    sizeLimit: useSignal(""),
    sqnrLimit: useSignal(""),
    messages: useSignal<FieldMessages>({}),
  };
  const element = useLeaveQuestion();
  const failure = useSignal<unknown>(undefined);
  const { start, isStarting } = useStart();
  const { route } = useLocation();
  const submit = async (event: Event) => {
    event.preventDefault();
    const { requests, messages } = planBatches(readChoices(form));
    form.messages.value = messages;
    failure.value = messages["models"];
    if (Object.keys(messages).length > 0) return;
    try {
      const address = await start((headersOf) => startBatches(requests, headersOf));
      if (address !== undefined) route(address);
    } catch (error) {
      failure.value = error;
    }
  };
  return (
    <>
      <MaybeError error={failure.value} />
      <form ref={element} class="card form" onSubmit={(event) => void submit(event)} noValidate>
        <ModelList form={form} />
        <TargetChoice chosen={form.targets} />
        <RecipeChoice chosen={form.recipes} />
        <GateFields form={form} />
        <TextField
          label="Name"
          hint="Leave it empty for a name made of the models and targets."
          error={form.messages.value["name"]}
          text={form.name}
        />
        <SizePredictions plan={readChoices(form)} />
        <BatchEnd form={form} isStarting={isStarting.value} />
      </form>
    </>
  );
}

function ModelList({ form: { models, uploads } }: { readonly form: BatchChoices }) {
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
      <UploadList uploads={uploads} onModel={add} />
      <ModelPicker label="or a model that is known here" value="" onPick={add} />
    </fieldset>
  );
}

interface UploadListProps extends Pick<BatchChoices, "uploads"> {
  readonly onModel: (model: ChosenModel) => void;
}

/** Files that are sent one after the other, and are models of the batch once they are there. */
function UploadList({ uploads, onModel }: UploadListProps) {
  const remove = (upload: ModelUpload) => {
    uploads.value = uploads.value.filter((other) => other !== upload);
  };
  const send = async (upload: ModelUpload) => {
    await upload.start();
    if (upload.step.value !== "done") return;
    onModel({
      name: shortModelName(upload.file.name) ?? "unnamed upload",
      source: upload.source,
    });
    remove(upload);
  };
  const take = async (files: readonly File[]) => {
    const added = files.map((file) => new ModelUpload(file));
    uploads.value = [...uploads.value, ...added];
    for (const upload of added) if (uploads.value.includes(upload)) await send(upload);
  };
  return (
    <>
      <DropZone title="Drop ONNX files here" multiple onFiles={(files) => void take(files)} />
      {uploads.value.map((upload, index) => (
        <UploadProgress
          key={index}
          upload={upload}
          onResume={() => void send(upload)}
          onRemove={() => remove(upload)}
        >
          Remove<span class="sr"> {upload.file.name}</span>
        </UploadProgress>
      ))}
    </>
  );
}

function TargetChoice({ chosen }: { readonly chosen: BatchChoices["targets"] }) {
  const { targets, error, reload } = useTargets();
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
  const messages = form.messages.value;
  const texts = { maxSizeRatio: form.sizeLimit, minSqnrDb: form.sqnrLimit } as const;
  return (
    <fieldset class="labelled">
      <legend>Gates</legend>
      <div class="columns">
        {(["maxSizeRatio", "minSqnrDb"] as const).map((gate) => (
          <GateField
            key={gate}
            gate={gate}
            text={texts[gate]}
            isRefused={messages[gate] !== undefined}
          />
        ))}
      </div>
    </fieldset>
  );
}

function BatchEnd({ form, isStarting }: { readonly form: BatchChoices; isStarting: boolean }) {
  const jobs = countJobs(readChoices(form));
  const { models, targets, recipes, uploads } = form;
  const isSending = uploads.value.some(({ step }) => ["hashing", "sending"].includes(step.value));
  return (
    <div class="form-end">
      <span class={jobs > maxBatchJobs ? "bad" : "soft"} role="status">
        {formatCount(models.value.length, "model")} × {formatCount(targets.value.size, "target")} ×{" "}
        {formatCount(recipes.value.size, "recipe")} = <b>{formatCount(jobs, "job")}</b>
        {jobs > maxBatchJobs && `, at most ${maxBatchJobs}`}
      </span>
      <span class="grow" />
      <button class="main" disabled={isStarting || isSending || jobs === 0 || jobs > maxBatchJobs}>
        {isSending
          ? "Waiting for the models…"
          : isStarting
            ? "Starting…"
            : `Start ${formatCount(jobs, "job")}`}
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

/** @returns where the batches are shown */
async function startBatches(
  requests: readonly BatchRequest[],
  headersOf: HeadersOf,
): Promise<string> {
  const ids: string[] = [];
  for (const body of requests) {
    ids.push((await service.call("submitBatch", { body, headers: headersOf(body) })).id);
  }
  return startedAddress(ids);
}
